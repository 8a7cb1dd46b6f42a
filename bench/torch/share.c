/* What share.py measures, through C: allreduces of 8 bytes between two ranks of a host, one after
 * the other. Rank 0 prints the processor time that each takes it, in microseconds.
 *
 *   share CALLS */
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include <tributary.h>

static void must(int status, const char *what)
{
    if (status != TRIB_OK) {
        fprintf(stderr, "share: %s: %s\n", what, trib_last_error());
        exit(1);
    }
}

static double processor_time(void)
{
    struct timespec now;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
    return (double)now.tv_sec * 1e6 + (double)now.tv_nsec / 1e3;
}

int main(int argc, char **argv)
{
    if (argc != 2 || getenv("TRIB_RANK") == NULL) {
        fprintf(stderr, "usage: trib run -n 2 -- share CALLS\n");
        return 2;
    }
    long calls = strtol(argv[1], NULL, 10);
    trib_params params = {.struct_size = sizeof params, .rank = (uint32_t)atoi(getenv("TRIB_RANK")), .size = 2};
    const uint32_t members[] = {0, 1};
    trib_context *context;
    trib_group *group;
    float vector[2] = {0};
    double before = 0;
    must(trib_init(&params, &context), "trib_init");
    must(trib_group_create(context, members, 2, 0, &group), "trib_group_create");
    for (long i = -calls / 10; i < calls; i++) {
        if (i == 0)
            before = processor_time();
        must(trib_allreduce(group, TRIB_IN_PLACE, vector, 2, TRIB_FLOAT32, TRIB_SUM), "trib_allreduce");
    }
    if (params.rank == 0)
        printf("%f\n", (processor_time() - before) / (double)calls);
    must(trib_group_free(group), "trib_group_free");
    must(trib_finalize(context), "trib_finalize");
    return 0;
}
