/* SPDX-License-Identifier: Apache-2.0 */
#include "collective.h"

#define NAME(name) #name,
static const char *const NAMES[COLLECTIVES] = {ALL_COLLECTIVES(NAME)};

static const struct {
    const char *key, *text;
} REASON_WORDS[REASONS] = {
    [REASON_TREE] = {"tree", "through the tree"},
    [REASON_NOT_TAKEN] = {"not_taken", "the tree does not take it"},
    [REASON_NO_JOB] = {"no_job", "this program has no job in the fabric"},
    [REASON_DRY_RUN] = {"dry_run", "TRIB_MPI=report: would have gone through the tree"},
    [REASON_NO_GROUP] = {"no_group", "the communicator has no group (one rank, an intercommunicator, MPI_Comm_idup, spawned processes, or refused)"},
    [REASON_FEW] = {"few", "the communicator has fewer ranks or hosts than TRIB_MPI_MIN_RANKS or TRIB_MPI_MIN_HOSTS (HCOLL_SHARP_NP) say"},
    [REASON_FEW_CALLS] = {"few_calls", "the communicator has no tree before as many calls for one as TRIB_MPI_MIN_CALLS says (TRIB_MPI=force: at once)"},
    [REASON_DISABLED] = {"disabled", "TRIB_MPI_DISABLE (HCOLL_ML_DISABLE_...) names it"},
    [REASON_ONE_HOST] = {"one_host", "its ranks share a host and no memory of ours, where the MPI is faster (TRIB_MPI=force: the tree)"},
    [REASON_DATATYPE] = {"datatype", "the datatype is derived or not one the tree knows"},
    [REASON_OPERATOR] = {"operator", "the operator is the program's own or not one the tree knows"},
    [REASON_COMBINATION] = {"combination", "the tree cannot do this operator on this datatype"},
    [REASON_EMPTY] = {"empty", "the vector has no elements"},
    [REASON_SMALL] = {"small", "the vector is shorter than TRIB_MPI_MIN_BYTES"},
    [REASON_LARGE] = {"large", "the vector is longer than TRIB_MPI_MAX_BYTES"},
    [REASON_MEASURED_SLOWER] = {"measured_slower", "such a call was measured to be slower through the tree (TRIB_MPI=force: the tree)"},
    [REASON_PREDICTED_SLOWER] = {"predicted_slower", "the MPI is predicted to be faster, says `trib explain` (TRIB_MPI=force: the tree)"},
    [REASON_ARGUMENT] = {"argument", "an argument is wrong; the MPI reports it"},
};

const char *collective_name(enum collective collective)
{
    return NAMES[collective];
}

const char *reason_text(enum reason reason)
{
    return REASON_WORDS[reason].text;
}

const char *reason_key(enum reason reason)
{
    return REASON_WORDS[reason].key;
}
