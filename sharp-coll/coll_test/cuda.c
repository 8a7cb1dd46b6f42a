/* SPDX-License-Identifier: Apache-2.0 */
#include "cuda.h"

#include <dlfcn.h>
#include <stdint.h>

/* The driver's interface: results and devices are ints, contexts are pointers, addresses of a GPU
   are numbers. */
static int (*init)(unsigned);
static int (*device_count)(int *);
static int (*device_get)(int *, int);
static int (*retain_context)(void **, int);
static int (*set_context)(void *);
static int (*allocate)(uint64_t *, size_t);
static int (*release)(uint64_t);
static int (*to_gpu)(uint64_t, const void *, size_t);
static int (*to_host)(void *, uint64_t, size_t);

static const struct {
    const char *name;
    void *function;
} calls[] = {
    {"cuInit", &init},
    {"cuDeviceGetCount", &device_count},
    {"cuDeviceGet", &device_get},
    {"cuDevicePrimaryCtxRetain", &retain_context},
    {"cuCtxSetCurrent", &set_context},
    {"cuMemAlloc_v2", &allocate},
    {"cuMemFree_v2", &release},
    {"cuMemcpyHtoD_v2", &to_gpu},
    {"cuMemcpyDtoH_v2", &to_host},
};

const char *cuda_open(int local_rank)
{
    void *context, *driver = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
    int count = 0, device;

    if (driver == NULL)
        return "no CUDA driver (libcuda.so.1) on this host";
    for (size_t at = 0; at < sizeof calls / sizeof calls[0]; at++) {
        void *symbol = dlsym(driver, calls[at].name);
        if (symbol == NULL)
            return "a CUDA driver (libcuda.so.1) that lacks calls";
        *(void **)calls[at].function = symbol;
    }
    if (init(0) != 0 || device_count(&count) != 0 || count < 1)
        return "a CUDA driver (libcuda.so.1), but no GPU";
    if (device_get(&device, local_rank % count) != 0 || retain_context(&context, device) != 0 || set_context(context) != 0)
        return "a GPU that gives no context";
    return NULL;
}

void *cuda_take(size_t len)
{
    uint64_t address;
    return allocate(&address, len) == 0 ? (void *)(uintptr_t)address : NULL;
}

void cuda_give_back(void *start)
{
    release((uintptr_t)start);
}

int cuda_write(void *to, const void *from, size_t len)
{
    return to_gpu((uintptr_t)to, from, len);
}

int cuda_read(void *to, const void *from, size_t len)
{
    return to_host(to, (uintptr_t)from, len);
}
