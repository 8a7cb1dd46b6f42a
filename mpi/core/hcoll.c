/* SPDX-License-Identifier: Apache-2.0 */
#include "hcoll.h"

#include "collective.h"
#include "notice.h"
#include "runtime.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PREFIX "HCOLL_"
#define DISABLES "HCOLL_ML_DISABLE_"
#define LEVELS_MAX 8
#define WORD_MAX 32

extern char **environ;

static const char *value_of(const char *name)
{
    const char *text = getenv(name);

    return text != NULL && text[0] != '\0' ? text : NULL;
}

static bool is_given(const char *name)
{
    const char *text = runtime_setting(name);

    return text != NULL && text[0] != '\0';
}

/* 0: off; 1: where it pays; 2: wherever it can be; 3: or the program ends; 4: as 3, whatever the
 * length. */
static bool is_level(const char *text)
{
    return text[0] >= '0' && text[0] <= '4' && text[1] == '\0';
}

/* The mode of a level of HCOLL_ENABLE_SHARP. */
static uint32_t mode_of(const char *level)
{
    static const uint32_t MODES[] = {MODE_OFF, MODE_ON, MODE_FORCE, MODE_REQUIRE, MODE_REQUIRE};

    return MODES[level[0] - '0'];
}

static void read_number(const char *name, const char *own, uint64_t *value)
{
    if (!is_given(own))
        (void)config_read_number(name, value);
}

static void read_enable_sharp(struct config *config)
{
    const char *text = value_of("HCOLL_ENABLE_SHARP");

    if (text == NULL || is_given("TRIB_MPI"))
        return;
    if (!is_level(text)) {
        notice("HCOLL_ENABLE_SHARP='%s' is none of 0, 1, 2, 3 and 4; it is ignored", text);
        return;
    }
    config->mode = mode_of(text);
}

/* Level 4, of vectors of any length, takes another of HCOLL's settings away. */
static void read_longest(struct config *config)
{
    const char *level = value_of("HCOLL_ENABLE_SHARP");

    if (level == NULL || strcmp(level, "4") != 0 || is_given("TRIB_MPI"))
        read_number("HCOLL_BCOL_P2P_ALLREDUCE_SHARP_MAX", "TRIB_MPI_MAX_BYTES", &config->max_allreduce);
}

static void read_disabled(struct config *config, const char *name, const char *value)
{
    char called[WORD_MAX * 2] = "MPI_";
    size_t length = strlen(called);

    if (strcmp(value, "0") == 0)
        return;
    for (size_t i = 0; name[i] != '\0' && length < sizeof called - 1; i++)
        called[length++] = (char)(i == 0 ? toupper((unsigned char)name[i]) : tolower((unsigned char)name[i]));
    if (!config_disable(config, called))
        notice("%s%s names no collective of MPI; it is ignored", DISABLES, name);
}

/* Cuts a list at its commas. Returns how many words there are, at most LEVELS_MAX. */
static size_t words_of(const char *list, char words[LEVELS_MAX][WORD_MAX])
{
    size_t count = 0;

    while (count < LEVELS_MAX && *list != '\0') {
        size_t length = strcspn(list, ",");
        snprintf(words[count++], WORD_MAX, "%.*s", (int)length, list);
        list += length + (list[length] == ',');
    }
    return count;
}

/* HCOLL builds a level for each pair of a subgroup and what carries it: sockets and hosts over
 * shared memory, and the network. Which of these there are decides which levels the tree has. */
static void read_levels(struct config *config)
{
    const char *groups = value_of("HCOLL_SBGP"), *carriers = value_of("HCOLL_BCOL");
    char group[LEVELS_MAX][WORD_MAX], carrier[LEVELS_MAX][WORD_MAX];
    bool has_sockets = false, has_hosts = false;

    if (groups == NULL && carriers == NULL)
        return;
    size_t count = groups != NULL ? words_of(groups, group) : 0;
    if (groups == NULL || carriers == NULL || words_of(carriers, carrier) != count) {
        notice("HCOLL_SBGP and HCOLL_BCOL are lists of equal length, a subgroup and what carries it; they are ignored");
        return;
    }
    for (size_t i = 0; i < count; i++) {
        bool in_memory = strncmp(carrier[i], "basesmuma", 9) == 0;
        has_sockets = has_sockets || (in_memory && strcmp(group[i], "basesmsocket") == 0);
        has_hosts = has_hosts || (in_memory && strcmp(group[i], "basesmuma") == 0);
    }
    config_ask(config, "levels", has_sockets ? "numa" : has_hosts ? "host" : "none");
}

/* Variables whose values are read elsewhere in this file. */
static bool is_known(const char *name, size_t length)
{
    static const char *const KNOWN[] = {
        "HCOLL_ENABLE_SHARP", "HCOLL_SHARP_NP", "HCOLL_SBGP", "HCOLL_BCOL", "HCOLL_BCOL_P2P_ALLREDUCE_SHARP_MAX", "HCOLL_MAIN_IB",
    };

    for (size_t i = 0; i < sizeof KNOWN / sizeof *KNOWN; i++)
        if (strlen(KNOWN[i]) == length && strncmp(KNOWN[i], name, length) == 0)
            return true;
    return false;
}

static void read_all(struct config *config)
{
    char unknown[512] = "";
    size_t used = 0, more = 0;

    for (char **entry = environ; *entry != NULL; entry++) {
        const char *end = strchr(*entry, '=');
        if (end == NULL || strncmp(*entry, PREFIX, strlen(PREFIX)) != 0)
            continue;
        size_t length = (size_t)(end - *entry);
        if (strncmp(*entry, DISABLES, strlen(DISABLES)) == 0) {
            char name[WORD_MAX];
            snprintf(name, sizeof name, "%.*s", (int)(length - strlen(DISABLES)), *entry + strlen(DISABLES));
            read_disabled(config, name, end + 1);
        } else if (!is_known(*entry, length)) {
            if (used + length + 3 < sizeof unknown)
                used += (size_t)snprintf(unknown + used, sizeof unknown - used, "%s%.*s", used > 0 ? ", " : "", (int)length, *entry);
            else
                more++;
        }
    }
    if (more > 0)
        notice("these variables of HCOLL have no meaning here and are ignored: %s%sand %zu more", unknown, used > 0 ? " " : "", more);
    else if (used > 0)
        notice("these variables of HCOLL have no meaning here and are ignored: %s", unknown);
}

int hcoll_enabled(void)
{
    const char *text = value_of("OMPI_MCA_coll_hcoll_enable");

    return text == NULL ? -1 : strcmp(text, "0") != 0 && strcmp(text, "false") != 0;
}

bool hcoll_requires(void)
{
    const char *text = value_of("HCOLL_ENABLE_SHARP");

    return text != NULL && is_level(text) && mode_of(text) == MODE_REQUIRE && hcoll_enabled() != 0;
}

void hcoll_read(struct config *config)
{
    read_enable_sharp(config);
    if (hcoll_enabled() == 0 && !is_given("TRIB_MPI"))
        config->mode = MODE_OFF;
    read_number("HCOLL_SHARP_NP", "TRIB_MPI_MIN_HOSTS", &config->min_hosts);
    read_number("OMPI_MCA_coll_hcoll_np", "TRIB_MPI_MIN_RANKS", &config->min_ranks);
    read_longest(config);
    read_levels(config);
    read_all(config);
    if (value_of("HCOLL_MAIN_IB") != NULL)
        notice("HCOLL_MAIN_IB='%s' is a hint: packets take this host's routes", value_of("HCOLL_MAIN_IB"));
}
