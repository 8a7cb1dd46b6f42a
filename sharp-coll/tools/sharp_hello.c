/* SPDX-License-Identifier: Apache-2.0
 *
 * sharp_hello - shows whether a fabric answers: this process joins a job alone, makes one group,
 * and does one barrier and one sum.
 */
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sharp/api/sharp.h"

static int bcast(void *context, void *buffer, int len, int root)
{
    (void)context, (void)buffer, (void)len, (void)root;
    return 0;
}

static int barrier(void *context)
{
    (void)context;
    return 0;
}

static int gather(void *context, int root, void *sbuf, void *rbuf, int len)
{
    (void)context, (void)root;
    memcpy(rbuf, sbuf, (size_t)len);
    return 0;
}

static const char usage[] =
    "Make a job of one process and run a barrier and a sum through the tree.\n"
    "\n"
    "Usage: sharp_hello [-d DEVICE] [-v LEVEL]\n"
    "\n"
    "  -d, --ib_dev DEVICE    a hint, as in other editions; packets take this host's routes\n"
    "  -v, --verbose LEVEL    lines on stderr: 0 fatal .. 5 trace [default: 2]\n"
    "  -V, --version          print the edition of the interface\n"
    "  -h, --help             print this\n"
    "\n"
    "TRIB_MANAGER names the aggregation manager. Exit codes: 0 all is well, 1 it is not, 2 wrong usage.\n"
    "\n"
    "Example:\n"
    "  eval \"$(trib fabric up --local)\" && sharp_hello\n";

static int failed(const char *what, int code)
{
    fprintf(stderr, "sharp_hello: %s: %s (%d); SHARP_COLL_LOG_LEVEL=3 tells more\n", what, sharp_coll_strerror(code), code);
    return 1;
}

static int hello(const char *device)
{
    struct sharp_coll_context *context = NULL;
    struct sharp_coll_comm *comm = NULL;
    struct sharp_coll_init_spec spec;
    struct sharp_coll_comm_init_spec group;
    struct sharp_coll_reduce_spec sum;
    int one = 20, result = 0, code;

    memset(&spec, 0, sizeof spec);
    spec.world_size = 1;
    spec.config = sharp_coll_default_config;
    spec.config.ib_dev_list = device;
    spec.oob_colls.bcast = bcast;
    spec.oob_colls.barrier = barrier;
    spec.oob_colls.gather = gather;
    if ((code = sharp_coll_init(&spec, &context)) != 0)
        return failed("cannot make a job", code);

    memset(&group, 0, sizeof group);
    group.size = 1;
    if ((code = sharp_coll_comm_init(context, &group, &comm)) != 0)
        return failed("cannot make a group", code);
    if ((code = sharp_coll_do_barrier(comm)) != 0)
        return failed("the barrier", code);

    memset(&sum, 0, sizeof sum);
    sum.sbuf_desc.buffer.ptr = &one;
    sum.rbuf_desc.buffer.ptr = &result;
    sum.sbuf_desc.buffer.length = sum.rbuf_desc.buffer.length = sizeof one;
    sum.dtype = SHARP_DTYPE_INT;
    sum.length = 1;
    sum.op = SHARP_OP_SUM;
    if ((code = sharp_coll_do_allreduce(comm, &sum)) != 0)
        return failed("the sum", code);
    if (result != one) {
        fprintf(stderr, "sharp_hello: the sum is %d, not %d\n", result, one);
        return 1;
    }
    if ((code = sharp_coll_comm_destroy(comm)) != 0 || (code = sharp_coll_finalize(context)) != 0)
        return failed("leaving", code);
    printf("Test Passed.\n");
    return 0;
}

int main(int argc, char **argv)
{
    static const struct option options[] = {
        {"ib_dev", required_argument, NULL, 'd'},
        {"verbose", required_argument, NULL, 'v'},
        {"version", no_argument, NULL, 'V'},
        {"help", no_argument, NULL, 'h'},
        {NULL, 0, NULL, 0},
    };
    const char *device = NULL;
    for (int option; (option = getopt_long(argc, argv, "d:v:Vh", options, NULL)) != -1;) {
        switch (option) {
        case 'd': device = optarg; break;
        case 'v': setenv("SHARP_COLL_LOG_LEVEL", optarg, 1); break;
        case 'V': printf("sharp_hello %s\n", SHARP_VERNO_STRING); return 0;
        case 'h': fputs(usage, stdout); return 0;
        default: fputs(usage, stderr); return 2;
        }
    }
    return hello(device);
}
