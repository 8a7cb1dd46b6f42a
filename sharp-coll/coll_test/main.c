/* SPDX-License-Identifier: Apache-2.0
 *
 * sharp_coll_test - the collectives of libsharp_coll under MPI: whether they are right, and how
 * fast.
 *
 *   main -> options, usage      what is asked for
 *        -> group               which ranks do it
 *        -> basic, complex      many a trial: an operation, run and compared with the reference
 *        -> perf -> report      times
 *   operation, message, memory, cuda    a call and what it works on
 *   sharp_layer, mpi_layer              what carries it
 */
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "cuda.h"
#include "fail.h"
#include "modes.h"
#include "report.h"

/* Several kinds of groups, unless one is asked for. */
static const struct group_choice complex_groups[] = {
    {GROUP_WORLD, 0}, {GROUP_SPLIT, 2}, {GROUP_SPLIT_REVERSED, 2}, {GROUP_HALF, 0}, {GROUP_PPN_COMM, 0},
};

/* What all modes use. */
struct session {
    const struct layer *layer;
    const struct options *options;
    struct locality locality;
    MPI_Comm job;
};

static bool correct(const struct session *session, int mode)
{
    const struct options *options = session->options;
    bool has_choice = mode == MODE_BASIC || options->has_group;
    struct tally tally = {0};
    size_t choices = has_choice ? 1 : sizeof complex_groups / sizeof complex_groups[0];

    for (size_t at = 0; at < choices; at++) {
        const struct group_choice *choice = has_choice ? &options->group : &complex_groups[at];
        int ranks;
        MPI_Comm_size(MPI_COMM_WORLD, &ranks);
        if (choice->splits > ranks)
            continue;
        struct turns turns = groups_make(session->layer, choice, &session->locality, session->job, options->ppn_comm_parallel);
        for (int turn = 0; turn < turns.count; turn++) {
            tally.seed = 0;
            if (turns.all[turn].takes_part && mode == MODE_BASIC)
                basic_run(session->layer, options, &turns.all[turn], &tally);
            else if (turns.all[turn].takes_part)
                complex_run(session->layer, options, &turns.all[turn], at == 0, &tally);
            MPI_Barrier(MPI_COMM_WORLD);
        }
        groups_free(session->layer, &turns);
    }
    return report_verdict(session->layer, options, mode == MODE_BASIC ? "basic" : "complex", &tally);
}

static void perform(const struct session *session)
{
    const struct options *options = session->options;
    struct turns turns = groups_make(session->layer, &options->group, &session->locality, session->job, options->ppn_comm_parallel);

    for (int turn = 0; turn < turns.count; turn++) {
        if (turns.all[turn].takes_part)
            perf_run(session->layer, options, &turns.all[turn]);
        MPI_Barrier(MPI_COMM_WORLD);
    }
    groups_free(session->layer, &turns);
}

/* Checks that the memory and the types that were asked for by name exist. */
static int check_needs(const struct session *session)
{
    const struct options *options = session->options;
    const char *reason = NULL;

    if (options->send_mem_type == SHARP_MEM_TYPE_CUDA || options->receive_mem_type == SHARP_MEM_TYPE_CUDA)
        reason = cuda_open(session->locality.local_rank);
    if (reason == NULL)
        return EXIT_GOOD;
    complain("-M cuda is not supported here: %s", reason);
    return EXIT_ENVIRONMENT;
}

static int check_abilities(const struct session *session)
{
    const struct options *options = session->options;
    struct abilities abilities = session->layer->abilities();

    if (!(abilities.dtypes >> options->element->code & 1)) {
        complain_once("-T %s: %s has no such type", options->element->name, session->layer->name);
        return EXIT_ENVIRONMENT;
    }
    for (int row = 0; row < COLLECTIVES; row++)
        if (options->collectives >> row & 1 && !layer_has(session->layer, collectives[row].kind))
            complain_once("%s is left out: %s offers it only with streams (SHARP_COLL_ENABLE_SAT)", collectives[row].name,
                          session->layer->name);
    return EXIT_GOOD;
}

static int run_modes(const struct session *session)
{
    bool good = true;

    if (session->options->modes & MODE_BASIC)
        good = correct(session, MODE_BASIC) && good;
    if (session->options->modes & MODE_COMPLEX)
        good = correct(session, MODE_COMPLEX) && good;
    if (session->options->modes & MODE_PERF)
        perform(session);
    return good ? EXIT_GOOD : EXIT_WRONG;
}

/* The worst of all ranks' codes. */
static int agreed(int own)
{
    int all;
    MPI_Allreduce(&own, &all, 1, MPI_INT, MPI_MAX, MPI_COMM_WORLD);
    return all;
}

static void await_debugger(unsigned seconds)
{
    char host[256] = "?";

    if (seconds == 0)
        return;
    gethostname(host, sizeof host - 1);
    complain("process %d on %s waits for %u s", (int)getpid(), host, seconds);
    sleep(seconds);
}

static int test(const struct options *options)
{
    struct session session = {.layer = options->through_mpi ? &mpi_layer : &sharp_layer, .options = options};
    int ranks, code;

    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    if (options->root >= ranks) {
        complain_once("-r %d: there %s %d rank%s", options->root, ranks == 1 ? "is" : "are", ranks, ranks == 1 ? "" : "s");
        return EXIT_USAGE;
    }
    if (!groups_fit(&options->group))
        return EXIT_USAGE;
    session.locality = locality_find();
    code = agreed(check_needs(&session));
    if (code != EXIT_GOOD)
        return code;
    await_debugger(options->sleep_s);
    session.job = groups_job(&options->group, &session.locality);
    bool joined = session.layer->join(options, session.job, session.locality.local_rank);
    /* With split:ppn-jobs there are several jobs. */
    code = agreed(joined ? EXIT_GOOD : EXIT_ENVIRONMENT);
    if (code == EXIT_GOOD)
        code = agreed(check_abilities(&session));
    if (code == EXIT_GOOD)
        code = run_modes(&session);
    if (joined)
        session.layer->leave();
    return code;
}

int main(int argc, char **argv)
{
    struct options options;

    /* What needs no MPI is done before MPI_Init. */
    if (!options_parse(argc, argv, &options))
        return EXIT_USAGE;
    if (options.help) {
        if (is_first_rank())
            fputs(options_usage, stdout);
        return EXIT_GOOD;
    }
    MPI_Init(&argc, &argv);
    int code = test(&options);
    MPI_Finalize();
    return code;
}
