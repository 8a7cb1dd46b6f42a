/* One of many ranks of a host: it joins, checks sums, and sums on until another rank is gone.
 *
 *   many_ranks FOLDER   writes FOLDER/RANK.joined, then FOLDER/RANK.over, a line of JSON each */

#include <dirent.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <tributary.h>

enum { SHORT = 2, LONG = 16 * 1024 };

static const char *folder;
static uint32_t rank, size;

static double seconds(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

static void fail(const char *what) {
    fprintf(stderr, "rank %u: %s: %s\n", rank, what, trib_last_error());
    exit(1);
}

static int descriptors(void) {
    DIR *listing = opendir("/proc/self/fd");
    int count = 0;
    while (readdir(listing)) count++;
    closedir(listing);
    return count;
}

static long resident_kib(void) {
    FILE *status = fopen("/proc/self/status", "r");
    char line[256];
    long kib = 0;
    while (fgets(line, sizeof line, status))
        if (!strncmp(line, "VmRSS:", 6)) kib = atol(line + 6);
    fclose(status);
    return kib;
}

/* What is written appears as a whole. */
static FILE *begin(char *path, const char *name) {
    snprintf(path, 4096, "%s/%u.%s", folder, rank, name);
    char part[4200];
    snprintf(part, sizeof part, "%s.part", path);
    return fopen(part, "w");
}

static void end(FILE *file, const char *path) {
    char part[4200];
    snprintf(part, sizeof part, "%s.part", path);
    if (fclose(file) || rename(part, path)) fail("cannot write");
}

/* Each rank gives its number plus one, so that no two give the same. */
static int sum_is_right(trib_group *group, size_t count) {
    static int64_t give[LONG], get[LONG];
    for (size_t i = 0; i < count; i++) give[i] = (int64_t)(i * (rank + 1));
    int status = trib_allreduce(group, give, get, count, TRIB_INT64, TRIB_SUM);
    if (status) return status;
    int64_t all = (int64_t)size * (size + 1) / 2;
    for (size_t i = 0; i < count; i++)
        if (get[i] != (int64_t)i * all) {
            fprintf(stderr, "rank %u: element %zu is %lld\n", rank, i, (long long)get[i]);
            exit(1);
        }
    return 0;
}

int main(int argc, char **argv) {
    if (argc != 2) return 2;
    folder = argv[1];
    rank = (uint32_t)atoi(getenv("TRIB_RANK"));
    size = (uint32_t)atoi(getenv("TRIB_SIZE"));
    trib_params params = {.struct_size = sizeof params, .rank = rank, .size = size};
    trib_context *context;
    trib_group *group;
    uint32_t *members = calloc(size, sizeof *members);
    for (uint32_t i = 0; i < size; i++) members[i] = i;
    char path[4096];

    int before = descriptors();
    long kib = resident_kib();
    double began = seconds();
    if (trib_init(&params, &context)) fail("trib_init");
    double joined = seconds() - began;
    if (trib_group_create(context, members, size, 0, &group)) fail("trib_group_create");
    if (sum_is_right(group, SHORT) || sum_is_right(group, LONG)) fail("trib_allreduce");
    FILE *file = begin(path, "joined");
    fprintf(file, "{\"joined\": %f, \"kib\": %ld}\n", joined, resident_kib() - kib);
    end(file, path);

    int status;
    do status = sum_is_right(group, SHORT);
    while (!status);
    char text[1024];
    snprintf(text, sizeof text, "%s", trib_last_error());
    for (char *c = text; *c; c++)
        if (*c == '"' || *c == '\\') *c = '\'';
    if (trib_group_free(group) || trib_finalize(context)) fail("trib_finalize");
    /* A thread that talks to the manager ends by itself, soon. */
    int left = descriptors() - before;
    for (int i = 0; i < 1000 && left; i++) {
        nanosleep(&(struct timespec){.tv_nsec = 10000000}, NULL);
        left = descriptors() - before;
    }
    file = begin(path, "over");
    fprintf(file, "{\"text\": \"%s\", \"descriptors\": %d}\n", text, left);
    end(file, path);
    free(members);
    return 0;
}
