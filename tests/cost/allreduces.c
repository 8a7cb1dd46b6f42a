/* Allreduces of floats back to back, so that what one of them costs can be counted from outside.
 * Rank 0 prints the processor time that they took it, in seconds.
 *
 *   allreduces BYTES ITERATIONS in|out      result in place of the input, or apart from it */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include <tributary.h>

static void must(int status, const char *what)
{
    if (status != TRIB_OK) {
        fprintf(stderr, "allreduces: %s: %s\n", what, trib_last_error());
        exit(1);
    }
}

static uint32_t number(const char *name)
{
    const char *text = getenv(name);
    if (text == NULL) {
        fprintf(stderr, "allreduces: %s is not set; start this with `trib run`\n", name);
        exit(2);
    }
    return (uint32_t)strtoul(text, NULL, 10);
}

static double processor_time(void)
{
    struct rusage used;
    getrusage(RUSAGE_SELF, &used);
    return (double)(used.ru_utime.tv_sec + used.ru_stime.tv_sec) + (double)(used.ru_utime.tv_usec + used.ru_stime.tv_usec) / 1e6;
}

int main(int argc, char **argv)
{
    if (argc != 4 || (strcmp(argv[3], "in") != 0 && strcmp(argv[3], "out") != 0)) {
        fprintf(stderr, "usage: allreduces BYTES ITERATIONS in|out\n");
        return 2;
    }
    size_t count = strtoull(argv[1], NULL, 10) / sizeof(float);
    long iterations = strtol(argv[2], NULL, 10);
    int in_place = strcmp(argv[3], "in") == 0;
    float *send = calloc(count, sizeof(float)), *receive = in_place ? send : calloc(count, sizeof(float));
    if (send == NULL || receive == NULL) {
        fprintf(stderr, "allreduces: no memory for vectors of %zu elements\n", count);
        return 1;
    }
    trib_params params = {.struct_size = sizeof params, .rank = number("TRIB_RANK"), .size = number("TRIB_SIZE")};
    uint32_t *members = calloc(params.size, sizeof *members);
    for (uint32_t rank = 0; members != NULL && rank < params.size; rank++)
        members[rank] = rank;
    trib_context *context;
    trib_group *group;
    must(trib_init(&params, &context), "trib_init");
    must(trib_group_create(context, members, params.size, 0, &group), "trib_group_create");
    double before = processor_time();
    for (long i = 0; i < iterations; i++) {
        send[0] = 1;
        must(trib_allreduce(group, send, receive, count, TRIB_FLOAT32, TRIB_SUM), "trib_allreduce");
        if (receive[0] != (float)trib_group_size(group) || receive[count - 1] != 0) {
            fprintf(stderr, "allreduces: wrong result in operation %ld\n", i);
            return 1;
        }
    }
    if (params.rank == 0)
        printf("%f\n", processor_time() - before);
    must(trib_group_free(group), "trib_group_free");
    must(trib_finalize(context), "trib_finalize");
    free(members);
    free(send);
    if (!in_place)
        free(receive);
    return 0;
}
