/* SPDX-License-Identifier: Apache-2.0
 *
 * What works without any fabric: codes, texts, wrong parameters, a manager that is not there.
 */
#include <stdint.h>

#include "ranks.h"

static void check_parameters(void)
{
    trib_context *context = NULL;
    trib_params params;
    memset(&params, 0, sizeof params);
    CHECK(trib_init(NULL, &context) == TRIB_ERR_INVALID);
    CHECK(trib_init(&params, &context) == TRIB_ERR_INVALID && strstr(trib_last_error(), "struct_size"));
    params.struct_size = sizeof params;
    CHECK(trib_init(&params, NULL) == TRIB_ERR_INVALID);
    CHECK(trib_init(&params, &context) == TRIB_ERR_INVALID && strstr(trib_last_error(), "not 0"));
    params.size = 2;
    params.rank = 2;
    CHECK(trib_init(&params, &context) == TRIB_ERR_INVALID);
    params.rank = 0;
    params.timeout_ms = -1;
    CHECK(trib_init(&params, &context) == TRIB_ERR_INVALID && strstr(trib_last_error(), "timeout_ms"));
    trib_oob none = {NULL, NULL, NULL};
    params.timeout_ms = 1000;
    params.quota = "lanes=2,lanes";
    CHECK(trib_init(&params, &context) == TRIB_ERR_INVALID && strstr(trib_last_error(), "params->quota: `lanes`"));
    params.quota = "lanes=2";
    params.calls = "allreduce=MPI_Allreduce,alltoall=MPI_Alltoall";
    CHECK(trib_init(&params, &context) == TRIB_ERR_INVALID);
    CHECK(strstr(trib_last_error(), "params->calls: `alltoall` is no collective; these are: barrier, allreduce"));
    params.calls = "allreduce";
    CHECK(trib_init(&params, &context) == TRIB_ERR_INVALID && strstr(trib_last_error(), "a name of 1 to 63 bytes"));
    params.calls = "allreduce=MPI_Allreduce";
    params.oob = &none;
    CHECK(trib_init(&params, &context) == TRIB_ERR_INVALID && strstr(trib_last_error(), "gather"));
    CHECK(context == NULL);
}

/* All ranks get rank 0's verdict and its text. */
static void no_manager(void)
{
    trib_context *context = NULL;
    trib_params params = rank_params();
    params.manager = own_rank == 0 ? "tls://127.0.0.1:9?credentials=/nonexistent" : NULL;
    params.timeout_ms = 3000;
    int status = trib_init(&params, &context);
    CHECK(status == TRIB_ERR_AUTH || status == TRIB_ERR_MANAGER);
    CHECK(context == NULL && strstr(trib_last_error(), "/nonexistent"));
}

int main(void)
{
    CHECK(strcmp(trib_strerror(TRIB_OK), "success") == 0);
    for (int status = TRIB_ERR_AUTH; status < 0; status++)
        CHECK(strcmp(trib_strerror(status), trib_strerror(-1000)) != 0);
    CHECK(trib_last_error()[0] == 0);
    check_parameters();
    CHECK(trib_group_rank(NULL) == UINT32_MAX && trib_group_size(NULL) == 0);
    return on_ranks(3, no_manager);
}
