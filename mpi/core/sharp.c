/* SPDX-License-Identifier: Apache-2.0 */
#include "sharp.h"

#include "runtime.h"

#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A length that no vector exceeds. */
#define NEVER (UINT64_C(1) << 40)

static const struct {
    const char *variable, *field;
} WISHES[] = {
    {"SHARP_COLL_JOB_QUOTA_OSTS", "osts"},
    {"SHARP_COLL_OSTS_PER_GROUP", "window"},
    {"SHARP_COLL_JOB_QUOTA_PAYLOAD_PER_OST", "payload"},
    {"SHARP_COLL_MAX_PAYLOAD_SIZE", "payload"},
    {"SHARP_COLL_JOB_QUOTA_MAX_GROUPS", "groups"},
    {"SHARP_COLL_SAT_LOCK_BATCH_SIZE", "lease_operations"},
    {"SHARP_COLL_JOB_NUM_TREES", "lanes"},
    {"SHARP_COLL_GROUPS_PER_COMM", "lanes"},
};

static void ask(struct config *config, const char *field, uint64_t number)
{
    char text[24];

    snprintf(text, sizeof text, "%" PRIu64, number);
    config_ask(config, field, text);
}

/* A number above 0; 0 asks for nothing there. */
static bool read_wish(const char *variable, uint64_t *number)
{
    return config_read_number(variable, number) && *number > 0;
}

void sharp_read(struct config *config)
{
    const char *streams = getenv("SHARP_COLL_ENABLE_SAT"), *own = runtime_setting("TRIB_TIMEOUT_MS");
    uint64_t number;

    for (size_t i = 0; i < sizeof WISHES / sizeof *WISHES; i++)
        if (read_wish(WISHES[i].variable, &number))
            ask(config, WISHES[i].field, number);
    /* The setting is the shortest vector that is streamed, the quota's field the longest that is
     * not. */
    if (streams != NULL && strcmp(streams, "0") == 0)
        ask(config, "stream_threshold", NEVER);
    else if (read_wish("SHARP_COLL_SAT_THRESHOLD", &number))
        ask(config, "stream_threshold", number - 1);
    if ((own == NULL || own[0] == '\0') && read_wish("SHARP_COLL_JOB_CREATE_TIMEOUT", &number) && number <= 86400000)
        config->timeout_ms = (uint32_t)number;
}
