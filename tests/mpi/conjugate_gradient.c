/* SPDX-License-Identifier: Apache-2.0
 *
 * An MPI application for rounds of faults (tests/rounds): it solves a system of linear equations by
 * conjugate gradients, again and again, until the file `stop` is in its folder.
 *
 * The numbers of each solution are hashed, bit by bit. All solutions, in every run, have to have
 * the hash that is given.
 *
 * usage: conjugate_gradient FOLDER [HASH]
 *
 * `progress` in the folder holds the number of collectives that rank 0 has done, as 8 bytes. At the
 * end each rank writes RANK.json: that number, the hash, how many solutions had another one, and
 * the spans longer than 5 ms in which no collective of this rank ended, by CLOCK_MONOTONIC, with
 * the seconds in which its thread was ready to run and had no processor.
 */
#include "check.h"

#include <fcntl.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

/* Unknowns of each rank, steps of a solution, and elements of a long vector. */
enum { LOCAL = 512, STEPS = 30, LONG = 32768, GAPS_MAX = 65536, WORDS_MAX = 512 };

static const double LEAST_GAP = 5e-3;

static int rank, size;
static uint64_t hash;
static volatile int64_t *progress;
static struct { double from, to, waited; } gaps[GAPS_MAX];
static int gap_count, schedule = -1;
static double last, last_waited;

static double seconds(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

/* For how long this thread has been ready and had no processor; 0 if the kernel does not tell. */
static double waited(void)
{
    char text[128] = "";
    long long ran, waited = 0;

    if (pread(schedule, text, sizeof text - 1, 0) <= 0 || sscanf(text, "%lld %lld", &ran, &waited) != 2)
        return 0;
    return (double)waited * 1e-9;
}

/* A collective has ended, with this result. */
static void ended(const double *result, int count)
{
    double now = seconds(), now_waited = waited();
    uint64_t bits;

    if (last > 0 && now - last > LEAST_GAP && gap_count < GAPS_MAX) {
        gaps[gap_count].from = last;
        gaps[gap_count].to = now;
        gaps[gap_count++].waited = now_waited - last_waited;
    }
    last = now;
    last_waited = now_waited;
    ++*progress;
    for (int i = 0; i < count; i++) {
        memcpy(&bits, &result[i], sizeof bits);
        hash = (hash ^ bits) * 0x100000001b3;
    }
}

static double dot(const double *a, const double *b)
{
    double mine = 0, all;

    for (int i = 0; i < LOCAL; i++)
        mine += a[i] * b[i];
    MPI_Allreduce(&mine, &all, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
    ended(&all, 1);
    return all;
}

/* out = A in, where A is the Laplacian of a line; in[-1] and in[LOCAL] are the neighbours' ends. */
static void apply(double *in, double *out)
{
    int left = rank > 0 ? rank - 1 : MPI_PROC_NULL, right = rank + 1 < size ? rank + 1 : MPI_PROC_NULL;

    in[-1] = in[LOCAL] = 0;
    MPI_Sendrecv(&in[0], 1, MPI_DOUBLE, left, 1, &in[LOCAL], 1, MPI_DOUBLE, right, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    MPI_Sendrecv(&in[LOCAL - 1], 1, MPI_DOUBLE, right, 2, &in[-1], 1, MPI_DOUBLE, left, 2, MPI_COMM_WORLD,
                 MPI_STATUS_IGNORE);
    for (int i = 0; i < LOCAL; i++)
        out[i] = 2.0625 * in[i] - in[i - 1] - in[i + 1];
}

static void solve(double *solution)
{
    static double residual[LOCAL], with_ends[LOCAL + 2], image[LOCAL];
    double *direction = &with_ends[1], before, now;

    for (int i = 0; i < LOCAL; i++) {
        solution[i] = 0;
        residual[i] = direction[i] = 1.0 / (1 + (rank * LOCAL + i) % 97);
    }
    before = dot(residual, residual);
    for (int step = 0; step < STEPS; step++) {
        apply(direction, image);
        double along = before / dot(direction, image);
        for (int i = 0; i < LOCAL; i++) {
            solution[i] += along * direction[i];
            residual[i] -= along * image[i];
        }
        now = dot(residual, residual);
        for (int i = 0; i < LOCAL; i++)
            direction[i] = residual[i] + now / before * direction[i];
        before = now;
    }
}

/* What programs do with a solution: statistics, histograms, parts for everybody. */
static void evaluate(const double *solution, int turn)
{
    static double spread[LONG], sums[LONG], part[LOCAL], all[WORDS_MAX];
    int root = turn % size;

    for (int i = 0; i < LONG; i++)
        spread[i] = solution[i % LOCAL] / (1 + (i + rank) % 31);
    MPI_Allreduce(spread, sums, LONG, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
    ended(sums, LONG);
    memset(sums, 0, sizeof sums);
    MPI_Reduce(spread, sums, LONG, MPI_DOUBLE, MPI_MAX, 0, MPI_COMM_WORLD);
    ended(sums, 0);
    MPI_Bcast(sums, LONG, MPI_DOUBLE, 0, MPI_COMM_WORLD);
    ended(sums, LONG);
    MPI_Reduce_scatter_block(spread, part, LOCAL, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
    ended(part, 0);
    MPI_Allgather(part, 8, MPI_DOUBLE, all, 8, MPI_DOUBLE, MPI_COMM_WORLD);
    ended(all, 8 * size);
    memcpy(part, solution, sizeof part);
    MPI_Bcast(part, LOCAL, MPI_DOUBLE, root, MPI_COMM_WORLD);
    /* The root changes from solution to solution, the numbers must not. */
    ended(part, 0);
    MPI_Barrier(MPI_COMM_WORLD);
    ended(part, 0);
}

static void share_progress(const char *folder)
{
    char path[4096];
    int file;

    snprintf(path, sizeof path, "%s/progress", folder);
    file = rank == 0 ? open(path, O_RDWR | O_CREAT, 0644) : open("/dev/zero", O_RDWR);
    CHECK(file >= 0 && (rank != 0 || ftruncate(file, sizeof *progress) == 0), "cannot open %s", path);
    progress = mmap(NULL, sizeof *progress, PROT_READ | PROT_WRITE, rank == 0 ? MAP_SHARED : MAP_PRIVATE, file, 0);
    CHECK(progress != MAP_FAILED, "cannot map %s", path);
    close(file);
}

static void write_outcome(const char *folder, uint64_t first, int wrong)
{
    char path[4096];
    FILE *file;

    snprintf(path, sizeof path, "%s/%d.json", folder, rank);
    file = fopen(path, "w");
    CHECK(file != NULL, "cannot write %s", path);
    fprintf(file, "{\"done\": %lld, \"hash\": \"%016llx\", \"wrong\": %d, \"gaps\": [", (long long)*progress,
            (unsigned long long)first, wrong);
    for (int i = 0; i < gap_count; i++)
        fprintf(file, "%s[%.6f, %.6f, %.6f]", i ? ", " : "", gaps[i].from, gaps[i].to, gaps[i].waited);
    fprintf(file, "]}\n");
    CHECK(fclose(file) == 0, "cannot write %s", path);
}

int main(int argc, char **argv)
{
    static double solution[LOCAL];
    char stop[4096];
    uint64_t wanted = argc > 2 ? strtoull(argv[2], NULL, 16) : 0;
    int over = 0, wrong = 0;

    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    CHECK(argc > 1 && 8 * size <= WORDS_MAX, "usage: %s FOLDER [HASH], at most %d ranks", argv[0], WORDS_MAX / 8);
    share_progress(argv[1]);
    schedule = open("/proc/thread-self/schedstat", O_RDONLY);
    snprintf(stop, sizeof stop, "%s/stop", argv[1]);
    for (int turn = 0; !over; turn++) {
        hash = 0xcbf29ce484222325;
        solve(solution);
        evaluate(solution, turn);
        if (wanted == 0)
            wanted = hash;
        wrong += hash != wanted;
        over = rank == 0 && access(stop, F_OK) == 0;
        MPI_Bcast(&over, 1, MPI_INT, 0, MPI_COMM_WORLD);
        ended(solution, 0);
    }
    write_outcome(argv[1], wanted, wrong);
    MPI_Finalize();
    return 0;
}
