/* SPDX-License-Identifier: Apache-2.0 */
#include "message.h"

#include <stdlib.h>
#include <string.h>

#include "fail.h"
#include "layer.h"

/* The fence is a multiple of 16 bytes, so that a buffer is aligned for every type. */
enum { FENCE = 64, BLANK = 0xa5 };

static size_t aligned(size_t len)
{
    return (len + 15) / 16 * 16;
}

static unsigned buffers(const struct message *message)
{
    return message->count > 0 ? message->count : 1;
}

/* If the length cannot be divided, the first pieces take a byte more: elements are cut on
   purpose. */
static size_t place_all(struct message *message)
{
    size_t at = FENCE;
    for (unsigned piece = 0; piece < buffers(message); piece++) {
        message->at[piece] = at;
        message->lens[piece] = message->len / buffers(message) + (piece < message->len % buffers(message));
        at = aligned(at + message->lens[piece]) + FENCE;
    }
    return at;
}

void message_make(struct message *message, size_t len, const struct message_form *form, const struct layer *layer)
{
    memset(message, 0, sizeof *message);
    message->len = len;
    message->count = form->count;
    message->layer = layer;
    size_t total = place_all(message);
    message->memory = memory_take(form->mem_type, form->kind, total);
    if (form->is_registered)
        message->handle = layer->name_memory(message->memory.start, total);
    for (unsigned piece = 0; piece < message->count; piece++)
        message->list[piece] = (struct sharp_data_iov){
            .ptr = message->memory.start + message->at[piece],
            .length = message->lens[piece],
            .mem_handle = message->handle,
        };
    message_blank(message);
}

void message_free(struct message *message)
{
    if (message->handle != NULL)
        message->layer->forget_memory(message->handle);
    memory_give_back(&message->memory);
}

static unsigned char *image(const struct message *message)
{
    unsigned char *bytes = malloc(message->memory.len);
    if (bytes == NULL) {
        complain("no %zu bytes of memory", message->memory.len);
        end_all(EXIT_ENVIRONMENT);
    }
    return bytes;
}

void message_blank(struct message *message)
{
    unsigned char *bytes = image(message);
    memset(bytes, BLANK, message->memory.len);
    memory_write(&message->memory, 0, bytes, message->memory.len);
    free(bytes);
}

void message_write(struct message *message, size_t at, const unsigned char *bytes, size_t len)
{
    size_t start = 0; /* of the piece, in the message */
    for (unsigned piece = 0; piece < buffers(message); piece++) {
        size_t end = start + message->lens[piece];
        size_t from = at > start ? at : start, to = at + len < end ? at + len : end;
        if (from < to)
            memory_write(&message->memory, message->at[piece] + from - start, bytes + from - at, to - from);
        start = end;
    }
}

void message_read(const struct message *message, unsigned char *bytes)
{
    for (unsigned piece = 0; piece < buffers(message); piece++) {
        memory_read(&message->memory, message->at[piece], bytes, message->lens[piece]);
        bytes += message->lens[piece];
    }
}

bool message_is_untouched(const struct message *message, bool inside)
{
    unsigned char *bytes = image(message);
    bool untouched = true;

    memory_read(&message->memory, 0, bytes, message->memory.len);
    for (unsigned piece = 0; piece < buffers(message) && !inside; piece++)
        memset(bytes + message->at[piece], BLANK, message->lens[piece]);
    for (size_t at = 0; at < message->memory.len && untouched; at++)
        untouched = bytes[at] == BLANK;
    free(bytes);
    return untouched;
}

struct sharp_coll_data_desc message_desc(struct message *message, size_t at, size_t len)
{
    struct sharp_coll_data_desc desc;

    memset(&desc, 0, sizeof desc);
    desc.mem_type = message->memory.mem_type;
    if (message->count > 0) {
        desc.type = SHARP_DATA_IOV;
        desc.iov.count = message->count;
        desc.iov.vector = message->list;
    } else {
        desc.type = SHARP_DATA_BUFFER;
        desc.buffer.ptr = message->memory.start + message->at[0] + at;
        desc.buffer.length = len;
        desc.buffer.mem_handle = message->handle;
    }
    return desc;
}

unsigned char *message_at(const struct message *message, size_t at)
{
    return message->memory.start + message->at[0] + at;
}
