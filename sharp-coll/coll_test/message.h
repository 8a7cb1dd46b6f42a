/* SPDX-License-Identifier: Apache-2.0
 *
 * A message in memory: one buffer, or a list of pieces with gaps between them, so that pieces in
 * a wrong order or of a wrong length are seen. Around and between them are bytes that no call
 * may change.
 */
#ifndef COLL_TEST_MESSAGE_H
#define COLL_TEST_MESSAGE_H

#include <stdbool.h>

#include "memory.h"

struct layer;

struct message {
    size_t len;
    unsigned count; /* pieces; 0: one buffer */
    struct memory memory;
    const struct layer *layer;
    void *handle; /* NULL: not registered */
    /* Where in memory the buffer (count 0) or each piece begins, and how long it is. */
    size_t at[SHARP_COLL_DATA_MAX_IOV];
    size_t lens[SHARP_COLL_DATA_MAX_IOV];
    struct sharp_data_iov list[SHARP_COLL_DATA_MAX_IOV];
};

/* The form of a message. */
struct message_form {
    enum sharp_data_memory_type mem_type;
    enum host_kind kind;
    unsigned count;
    bool is_registered;
};

/* Makes a message. The layer registers the memory if the form says so. A message contains
 * pointers into itself, so it must not be moved. */
void message_make(struct message *message, size_t len, const struct message_form *form, const struct layer *layer);
void message_free(struct message *message);
/* Fills everything with bytes that no result has. */
void message_blank(struct message *message);
void message_write(struct message *message, size_t at, const unsigned char *bytes, size_t len);
void message_read(const struct message *message, unsigned char *bytes);
/* Whether everything outside the message is as message_blank left it, and the inside as well if
 * asked. */
bool message_is_untouched(const struct message *message, bool inside);
/* Describes the whole list, or len bytes of the buffer from `at` on. */
struct sharp_coll_data_desc message_desc(struct message *message, size_t at, size_t len);
/* Byte `at` of a message that is one buffer in host memory. */
unsigned char *message_at(const struct message *message, size_t at);

#endif
