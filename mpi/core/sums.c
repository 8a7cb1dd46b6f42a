/* SPDX-License-Identifier: Apache-2.0 */
#include "sums.h"

#include "notice.h"
#include "runtime.h"
#include "tributary.h"

#include <string.h>

/* Longer than any word that means something. */
#define WORD_MAX 16

/* What `text` asks for, SUMS_UNKNOWN if it is no such word. Unless `name` is NULL, a word that
 * means something else here is told by it. */
static uint32_t read_word(const char *name, const char *text)
{
    if (text[0] == '\0' || strcmp(text, "plain") == 0)
        return TRIB_SUMS_PLAIN;
    if (strcmp(text, "fixed") == 0)
        return TRIB_SUMS_FIXED;
    if (strcmp(text, "exact") == 0)
        return TRIB_SUMS_EXACT;
    if (strcmp(text, "int8") == 0) {
        if (name != NULL)
            notice("%s=int8 is for gradients, and an MPI program sums what it compares, too: its sums are plain", name);
        return TRIB_SUMS_PLAIN;
    }
    return SUMS_UNKNOWN;
}

uint32_t sums_of_program(void)
{
    const char *text = runtime_setting("TRIB_SUMS");

    return text == NULL ? TRIB_SUMS_PLAIN : read_word("TRIB_SUMS", text);
}

uint32_t sums_of(MPI_Comm comm, uint32_t otherwise)
{
    char word[WORD_MAX + 1];

    if (!runtime_info(comm, SUMS_KEY, word, WORD_MAX))
        return otherwise;
    const char *name = runtime_rank(comm) == 0 ? "the info key " SUMS_KEY : NULL;
    uint32_t sums = read_word(name, word);
    if (sums != SUMS_UNKNOWN)
        return sums;
    if (name != NULL)
        notice("%s='%s' is none of plain, fixed and exact; 'exact' is used, so that no result depends on an order", name, word);
    return TRIB_SUMS_EXACT;
}

bool sums_have_no_order(uint32_t sums)
{
    return sums != TRIB_SUMS_PLAIN;
}
