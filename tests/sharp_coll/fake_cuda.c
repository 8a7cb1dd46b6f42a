/* SPDX-License-Identifier: Apache-2.0
 *
 * A CUDA driver of two devices whose memory is the host's, for tests on machines without a GPU.
 * It distinguishes its own memory from other memory: a copy to or from an address that it has
 * not given out fails, and so does a copy without a context.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

enum { INVALID_VALUE = 1, INVALID_CONTEXT = 201, DEVICES = 2, REGIONS_MAX = 4096 };
enum { ATTRIBUTE_CONTEXT = 1, ATTRIBUTE_MEMORY_TYPE = 2, MEMORY_DEVICE = 2 };

static struct {
    uint64_t start;
    size_t len;
} regions[REGIONS_MAX];
static int context;
static void *current;

static int is_mine(uint64_t address, size_t len)
{
    for (int at = 0; at < REGIONS_MAX; at++)
        if (regions[at].start != 0 && address >= regions[at].start && address + len <= regions[at].start + regions[at].len)
            return 1;
    return 0;
}

int cuInit(unsigned flags)
{
    return flags == 0 ? 0 : INVALID_VALUE;
}

int cuDeviceGetCount(int *count)
{
    *count = DEVICES;
    return 0;
}

int cuDeviceGet(int *device, int number)
{
    *device = number;
    return number < DEVICES ? 0 : INVALID_VALUE;
}

int cuDevicePrimaryCtxRetain(void **retained, int device)
{
    *retained = &context;
    return device < DEVICES ? 0 : INVALID_VALUE;
}

int cuCtxSetCurrent(void *set)
{
    current = set;
    return 0;
}

int cuCtxPushCurrent_v2(void *pushed)
{
    current = pushed;
    return pushed == &context ? 0 : INVALID_CONTEXT;
}

int cuCtxPopCurrent_v2(void **popped)
{
    *popped = current;
    return 0;
}

int cuMemAlloc_v2(uint64_t *address, size_t len)
{
    for (int at = 0; at < REGIONS_MAX; at++)
        if (regions[at].start == 0) {
            *address = regions[at].start = (uintptr_t)malloc(len);
            regions[at].len = len;
            return 0;
        }
    return INVALID_VALUE;
}

int cuMemFree_v2(uint64_t address)
{
    for (int at = 0; at < REGIONS_MAX; at++)
        if (regions[at].start == address) {
            regions[at].start = 0;
            free((void *)(uintptr_t)address);
            return 0;
        }
    return INVALID_VALUE;
}

int cuPointerGetAttribute(void *value, int attribute, uint64_t address)
{
    void *own = &context;
    unsigned kind = MEMORY_DEVICE;

    if (!is_mine(address, 1))
        return INVALID_VALUE;
    if (attribute == ATTRIBUTE_CONTEXT)
        memcpy(value, &own, sizeof own);
    else if (attribute == ATTRIBUTE_MEMORY_TYPE)
        memcpy(value, &kind, sizeof kind);
    else
        return INVALID_VALUE;
    return 0;
}

int cuMemcpyHtoD_v2(uint64_t to, const void *from, size_t len)
{
    if (current == NULL || !is_mine(to, len))
        return current ? INVALID_VALUE : INVALID_CONTEXT;
    memcpy((void *)(uintptr_t)to, from, len);
    return 0;
}

int cuMemcpyDtoH_v2(void *to, uint64_t from, size_t len)
{
    if (current == NULL || !is_mine(from, len))
        return current ? INVALID_VALUE : INVALID_CONTEXT;
    memcpy(to, (const void *)(uintptr_t)from, len);
    return 0;
}
