/* SPDX-License-Identifier: Apache-2.0 */
#include "sharp.h"

#include "notice.h"
#include "runtime.h"

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

/* Reads a number above 0; 0 asks for nothing there. */
static bool read_number(const char *variable, uint64_t *number)
{
    const char *text = getenv(variable);
    char *end;

    if (text == NULL || text[0] == '\0')
        return false;
    *number = strtoull(text, &end, 10);
    if (text[0] >= '0' && text[0] <= '9' && *end == '\0')
        return *number > 0;
    notice("%s='%s' is no whole number; it is ignored", variable, text);
    return false;
}

static bool is_in(const char *quota, const char *field)
{
    size_t length = strlen(field);

    for (const char *at = quota; at != NULL && (at = strstr(at, field)) != NULL; at += length)
        if ((at == quota || at[-1] == ',') && at[length] == '=')
            return true;
    return false;
}

static void ask(struct config *config, const char *field, uint64_t number)
{
    size_t used = strlen(config->quota);

    if (is_in(runtime_setting("TRIB_QUOTA"), field) || is_in(config->quota, field))
        return;
    snprintf(config->quota + used, sizeof config->quota - used, "%s%s=%llu", used > 0 ? "," : "", field, (unsigned long long)number);
}

void sharp_read(struct config *config)
{
    const char *streams = getenv("SHARP_COLL_ENABLE_SAT"), *own = runtime_setting("TRIB_TIMEOUT_MS");
    uint64_t number;

    for (size_t i = 0; i < sizeof WISHES / sizeof *WISHES; i++)
        if (read_number(WISHES[i].variable, &number))
            ask(config, WISHES[i].field, number);
    /* The setting is the shortest vector that is streamed, the quota's field the longest that is
     * not. */
    if (streams != NULL && strcmp(streams, "0") == 0)
        ask(config, "stream_threshold", NEVER);
    else if (read_number("SHARP_COLL_SAT_THRESHOLD", &number))
        ask(config, "stream_threshold", number - 1);
    if ((own == NULL || own[0] == '\0') && read_number("SHARP_COLL_JOB_CREATE_TIMEOUT", &number) && number <= 86400000)
        config->timeout_ms = (uint32_t)number;
}
