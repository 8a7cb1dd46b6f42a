/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "hcoll.h"
#include "notice.h"
#include "runtime.h"
#include "sharp.h"
#include "sums.h"
#include "types.h"
#include "tributary.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* One row for each number. README.md lists the same settings. */
static const struct setting {
    const char *name;
    uint64_t fallback, largest;
    bool bytes; /* K, M and G may follow the digits */
} TIMEOUT = {"TRIB_TIMEOUT_MS", 30000, 86400000, false}, MIN_BYTES = {"TRIB_MPI_MIN_BYTES", 0, UINT64_MAX, true},
  MAX_BYTES = {"TRIB_MPI_MAX_BYTES", UINT64_MAX, UINT64_MAX, true}, MIN_RANKS = {"TRIB_MPI_MIN_RANKS", 2, UINT32_MAX, false},
  MIN_HOSTS = {"TRIB_MPI_MIN_HOSTS", 1, UINT32_MAX, false}, MIN_CALLS = {"TRIB_MPI_MIN_CALLS", 32, UINT32_MAX, false};

static bool parse(const struct setting *setting, const char *text, uint64_t *value)
{
    char *end;
    unsigned shift = 0;

    if (text[0] < '0' || text[0] > '9')
        return false; /* strtoull would take a sign */
    errno = 0;
    *value = strtoull(text, &end, 10);
    if (errno != 0)
        return false;
    if (setting->bytes && *end != '\0') {
        static const char units[] = "KMG";
        const char *unit = strchr(units, *end);
        if (unit == NULL)
            return false;
        shift = 10 * (unsigned)(unit - units + 1);
        end++;
    }
    if (*end != '\0' || *value > setting->largest >> shift)
        return false;
    *value <<= shift;
    return true;
}

uint32_t config_timeout_ms(void)
{
    const char *text = runtime_setting(TIMEOUT.name);
    uint64_t value;

    return (uint32_t)(text != NULL && parse(&TIMEOUT, text, &value) && value > 0 ? value : TIMEOUT.fallback);
}

/* Whether libtributary reads this text, too, and takes it for no number: then it says so, and joins
 * nothing. */
static bool is_refused_by_the_library(const struct setting *setting, const char *text)
{
    const char *own = getenv(setting->name);

    return setting == &TIMEOUT && own != NULL && strcmp(own, text) == 0 && strspn(text, "+0123456789") != strlen(text);
}

static uint64_t number(const struct setting *setting)
{
    const char *text = runtime_setting(setting->name);
    uint64_t value;

    if (text == NULL || text[0] == '\0')
        return setting->fallback;
    if (parse(setting, text, &value))
        return value;
    if (is_refused_by_the_library(setting, text))
        return setting->fallback;
    notice("%s='%s' is not a number%s; the default is used. Give a whole number up to %llu%s", setting->name, text,
           setting->bytes ? " of bytes" : "", (unsigned long long)setting->largest,
           setting->bytes ? ", where K, M and G may follow the digits" : "");
    return setting->fallback;
}

bool config_read_number(const char *variable, uint64_t *number)
{
    const struct setting whole = {variable, 0, UINT64_MAX, false};
    const char *text = getenv(variable);

    if (text == NULL || text[0] == '\0')
        return false;
    if (parse(&whole, text, number))
        return true;
    notice("%s='%s' is no whole number; it is ignored", variable, text);
    return false;
}

/* Whether a list of fields, "levels=host,groups=4", has this one. */
static bool has_field(const char *quota, const char *field)
{
    size_t length = strlen(field);

    for (const char *at = quota; at != NULL && (at = strstr(at, field)) != NULL; at += length)
        if ((at == quota || at[-1] == ',') && at[length] == '=')
            return true;
    return false;
}

void config_ask(struct config *config, const char *field, const char *much)
{
    size_t used = strlen(config->quota);

    if (!has_field(runtime_setting("TRIB_QUOTA"), field) && !has_field(config->quota, field))
        snprintf(config->quota + used, sizeof config->quota - used, "%s%s=%s", used > 0 ? "," : "", field, much);
}

static bool switched_on(const char *name)
{
    const char *text = runtime_setting(name);
    return text != NULL && text[0] != '\0' && strcmp(text, "0") != 0;
}

static uint32_t read_mode(void)
{
    const char *text = runtime_setting("TRIB_MPI");

    if (text == NULL || text[0] == '\0' || strcmp(text, "on") == 0)
        return MODE_ON;
    if (strcmp(text, "force") == 0)
        return MODE_FORCE;
    if (strcmp(text, "off") == 0)
        return MODE_OFF;
    if (strcmp(text, "report") == 0)
        return MODE_REPORT;
    if (strcmp(text, "require") == 0)
        return MODE_REQUIRE;
    notice("TRIB_MPI='%s' is none of on, force, require, report and off; 'on' is used", text);
    return MODE_ON;
}

bool config_requires(void)
{
    const char *text = runtime_setting("TRIB_MPI");

    return text != NULL && text[0] != '\0' ? strcmp(text, "require") == 0 : hcoll_requires();
}

/* The length of a collective's name but for the ending of the form for large counts. */
static size_t length_of_both(const char *name)
{
    size_t length = strlen(name);

    return length > 2 && strcmp(name + length - 2, "_c") == 0 ? length - 2 : length;
}

bool config_disable(struct config *config, const char *name)
{
    bool found = false;

    for (unsigned at = 0; at < COLLECTIVES; at++) {
        const char *known = collective_name((enum collective)at);
        size_t length = length_of_both(known);
        if (length != length_of_both(name) || strncmp(known, name, length) != 0)
            continue;
        config->disabled[at / 8] |= (uint8_t)(1u << at % 8);
        found = true;
    }
    return found;
}

bool config_is_disabled(const struct config *config, enum collective collective)
{
    return (config->disabled[collective / 8] >> collective % 8 & 1) != 0;
}

bool config_is_forced(const struct config *config)
{
    return config->mode == MODE_FORCE || config->mode == MODE_REQUIRE;
}

/* "MPI_Bcast,MPI_Iallreduce" */
static void read_disabled(struct config *config)
{
    const char *list = runtime_setting("TRIB_MPI_DISABLE");
    char name[64];

    while (list != NULL && *list != '\0') {
        size_t length = strcspn(list, ",");
        snprintf(name, sizeof name, "%.*s", (int)length, list);
        if (!config_disable(config, name))
            notice("TRIB_MPI_DISABLE names '%s', which is no collective of MPI; give names such as MPI_Bcast,MPI_Iallreduce", name);
        list += length + (list[length] == ',');
    }
}

static void ask_about(enum trib_dtype dtype, uint32_t supported[CONFIG_DTYPES])
{
    for (int op = TRIB_MAX; op <= TRIB_MINLOC; op++)
        if (trib_supports(dtype, (enum trib_op)op) == 1)
            supported[dtype] |= UINT32_C(1) << op;
}

static void ask_library(uint32_t supported[CONFIG_DTYPES])
{
    for (int value = TRIB_UINT32; value <= TRIB_INT8; value++) {
        ask_about((enum trib_dtype)value, supported);
        for (int index = TRIB_UINT32; index <= TRIB_INT8; index++)
            ask_about(TRIB_PAIR(value, index), supported);
    }
}

void config_read(struct config *config)
{
    const char *manager = runtime_setting("TRIB_MANAGER");

    memset(config, 0, sizeof *config);
    config->mode = read_mode();
    config->timeout_ms = (uint32_t)number(&TIMEOUT);
    if (config->timeout_ms == 0)
        config->timeout_ms = (uint32_t)TIMEOUT.fallback;
    config->min_bytes = number(&MIN_BYTES);
    config->max_bytes = number(&MAX_BYTES);
    config->max_allreduce = UINT64_MAX;
    config->min_ranks = number(&MIN_RANKS);
    config->min_hosts = number(&MIN_HOSTS);
    config->min_calls = (uint32_t)number(&MIN_CALLS);
    read_disabled(config);
    config->report = switched_on("TRIB_MPI_REPORT") || switched_on("TRIB_MPI_REPORT_FILE");
    config->profile = config->report && switched_on("TRIB_MPI_PROFILE");
    if (manager != NULL && snprintf(config->manager, sizeof config->manager, "%s", manager) >= CONFIG_TEXT) {
        notice("TRIB_MANAGER is longer than %d characters and is ignored", CONFIG_TEXT - 1);
        config->manager[0] = '\0';
    }
    ask_library(config->supported);
    config->sums = sums_of_program();
    hcoll_read(config);
    sharp_read(config);
}
