/* SPDX-License-Identifier: Apache-2.0
 *
 * A CUDA driver of two devices whose memory is the host's, for tests on machines without a GPU.
 *
 * It is strict where a real one may be lucky:
 * - Memory of a device cannot be touched by the host: the driver alone has a mapping of it.
 * - A stream is a queue, which a thread of its own works off late: each copy waits a random time,
 *   so that what does not wait for an event meets memory that is not ready.
 * - An upload from pageable memory has left the host when its call returns, and reaches the device
 *   later, in the order of the default stream: as CUDA's documentation has it. It has reached the
 *   device if the memory, or for memory out of a pool the context, has been told to synchronize.
 * - Pinned memory that is freed, and device memory that is freed, while a copy from or to it is
 *   queued ends the process with words.
 * - While a graph is captured, calls that would spoil the capture do so.
 * - Kernels are done by their text in PTX (ptx.h), as late as copies.
 * - Memory of a device that another process still has mapped changes when it is freed.
 *
 * What tests set by environment variables:
 *   STAND_IN_DELAY_US=N       the mean time that a copy waits (200)
 *   STAND_IN_FAIL=CALL:N:CODE the Nth call of a function returns CODE; CALL may be "copy" or
 *                             "kernel": then the Nth one fails when it is executed, and its context
 *                             is lost
 *   STAND_IN_POOL=1           memory belongs to no context, as memory out of a pool
 *   STAND_IN_OPEN=1           the host may touch memory of a device
 *   CUDA_LAUNCH_BLOCKING=1    what is queued is done when the call returns
 * or, while the program runs, by standInSet("STAND_IN_FAIL", "..."). What they ask:
 *   standInCount("cuCtxSynchronize"), standInCount("copy device-host")   how often
 *   standInTrace()   the executed copies in their order, a letter each: o out of a device, b back
 *                    to one, h neither
 * standInSleep queues work that takes long.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "ptx.h"

#define EXPORT __attribute__((visibility("default")))
enum { INVALID_VALUE = 1, OUT_OF_MEMORY = 2, INVALID_CONTEXT = 201, INVALID_HANDLE = 400, NOT_READY = 600, ILLEGAL_ADDRESS = 700 };
enum { CAPTURE_UNSUPPORTED = 900, CAPTURE_IMPLICIT = 906 };
enum { DEVICES = 2, REGIONS_MAX = 4096, NAMES_MAX = 64, SETTINGS_MAX = 8, TRACE_MAX = 1 << 16, STACK_MAX = 16 };
enum { ATTRIBUTE_CONTEXT = 1, ATTRIBUTE_MEMORY_TYPE = 2, ATTRIBUTE_SYNC_MEMOPS = 6, ATTRIBUTE_DEVICE_ORDINAL = 9 };
enum { CONTEXT_SYNC_MEMOPS = 0x80 };
enum { MEMORY_HOST = 1, MEMORY_DEVICE = 2 };
enum { NON_BLOCKING = 1 };
enum { MODE_GLOBAL = 0, MODE_RELAXED = 2 };
enum { CAPTURE_NONE = 0, CAPTURE_ACTIVE = 1, CAPTURE_INVALIDATED = 2 };

struct region {
    uint64_t start;
    size_t len;
    char *shadow; /* where the driver reaches memory of a device; NULL: pinned memory of the host */
    struct context *context;
    int file;     /* of memory of a device: where it lies */
    int imported; /* from another process */
    unsigned synchronizes;
};

struct event {
    struct context *context;
    unsigned long recorded, come; /* how often */
    int destroyed;
};

enum kind { COPY, UPLOAD, RECORD, WAIT, SLEEP, KERNEL };

struct work {
    struct work *next;
    enum kind kind;
    uint64_t to, from;
    size_t len;
    struct event *event;
    unsigned long which;
    unsigned us;
    void *staged; /* what an upload takes to the device */
    struct ptx_launch *launch;
};

struct stream {
    struct context *context;
    struct work *first, *last; /* the first one stays there until it is done */
    pthread_cond_t changed;
    int destroyed, non_blocking, capture;
};

struct context {
    int ordinal;
    struct stream *default_stream;
    unsigned flags;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t done = PTHREAD_COND_INITIALIZER;
static struct context contexts[DEVICES] = {{0, NULL, 0}, {1, NULL, 0}};
static struct region regions[REGIONS_MAX];
static struct {
    const char *name;
    long count;
} counts[NAMES_MAX];
static struct {
    char *name, *value;
} settings[SETTINGS_MAX];
static char trace[TRACE_MAX + 1];
static size_t traced;
static int lost;      /* the code that every call returns since a copy failed */
static int capturing; /* streams that are captured in the global mode */
static struct stream *captured;
static unsigned seed = 1;
static _Thread_local struct context *stack[STACK_MAX];
static _Thread_local int depth, mode;

static void die(const char *why)
{
    fprintf(stderr, "stand-in driver: %s\n", why);
    abort();
}

static long count(const char *name)
{
    for (int at = 0; at < NAMES_MAX; at++) {
        if (counts[at].name == NULL)
            counts[at].name = name;
        if (strcmp(counts[at].name, name) == 0)
            return ++counts[at].count;
    }
    die("too many names");
    return 0;
}

/* A variable's value, which standInSet may have set. */
static const char *setting(const char *name)
{
    for (int at = 0; at < SETTINGS_MAX && settings[at].name; at++)
        if (strcmp(settings[at].name, name) == 0)
            return settings[at].value;
    return getenv(name);
}

/* The code that STAND_IN_FAIL wants for this call, the `number`th of this name. */
static int wanted(const char *name, long number)
{
    const char *text = setting("STAND_IN_FAIL"), *colon = text ? strchr(text, ':') : NULL;
    long nth;
    int code;

    if (colon == NULL || strlen(name) != (size_t)(colon - text) || strncmp(text, name, strlen(name)) != 0)
        return 0;
    return sscanf(colon, ":%ld:%d", &nth, &code) == 2 && nth == number ? code : 0;
}

/* Every call begins here, with the lock held from now on. */
static int begin(const char *name)
{
    pthread_mutex_lock(&lock);
    int code = wanted(name, count(name));
    return code ? code : lost;
}

static int end(int code)
{
    pthread_mutex_unlock(&lock);
    return code;
}

/* Calls begin here that must not be made while a graph is captured in the global mode. */
static int begin_unsafe(const char *name)
{
    int code = begin(name);
    if (code == 0 && capturing > 0 && mode != MODE_RELAXED) {
        captured->capture = CAPTURE_INVALIDATED;
        return CAPTURE_UNSUPPORTED;
    }
    return code;
}

static struct context *current(void)
{
    return depth > 0 ? stack[depth - 1] : NULL;
}

static struct region *region_of(uint64_t address, size_t len)
{
    for (int at = 0; at < REGIONS_MAX; at++) {
        struct region *region = &regions[at];
        if (region->start != 0 && address >= region->start && address < region->start + region->len)
            return address + len <= region->start + region->len ? region : NULL;
    }
    return NULL;
}

static int is_inside_any(uint64_t address)
{
    return region_of(address, 1) != NULL;
}

static char *reach(uint64_t address)
{
    struct region *region = region_of(address, 1);
    return region && region->shadow ? region->shadow + (address - region->start) : (char *)(uintptr_t)address;
}

static int is_on_device(uint64_t address)
{
    struct region *region = region_of(address, 1);
    return region && region->shadow;
}

static void copy(uint64_t to, uint64_t from, size_t len)
{
    int out = is_on_device(from), back = is_on_device(to);
    memcpy(reach(to), reach(from), len);
    count(out && !back ? "copy device-host" : back && !out ? "copy host-device" : "copy other");
    if ((!out && !is_inside_any(from)) || (!back && !is_inside_any(to)))
        count("copy pageable");
    if (traced < TRACE_MAX)
        trace[traced++] = out && !back ? 'o' : back && !out ? 'b' : 'h';
}

static unsigned delay(void)
{
    const char *text = setting("STAND_IN_DELAY_US");
    unsigned mean = text ? (unsigned)atoi(text) : 200;
    seed = seed * 1103515245u + 12345u;
    return mean ? (seed >> 8) % (2 * mean) : 0;
}

static void nap(unsigned us)
{
    pthread_mutex_unlock(&lock);
    usleep(us);
    pthread_mutex_lock(&lock);
}

/* Where a kernel reaches an address, without looking through all regions each time. */
static char *reach_quickly(uint64_t address, size_t len)
{
    static struct region *last[4];
    static unsigned next;

    for (int at = 0; at < 4; at++)
        if (last[at] && last[at]->start && address >= last[at]->start && address + len <= last[at]->start + last[at]->len)
            return last[at]->shadow ? last[at]->shadow + (address - last[at]->start) : (char *)(uintptr_t)address;
    struct region *region = region_of(address, len);
    if (region)
        last[next++ % 4] = region;
    return region ? reach(address) : NULL;
}

static void execute(struct work *work)
{
    switch (work->kind) {
    case COPY:
        nap(delay());
        if (lost == 0)
            lost = wanted("copy", count("copy"));
        if (lost == 0)
            copy(work->to, work->from, work->len);
        break;
    case UPLOAD:
        nap(delay());
        memcpy(reach(work->to), work->staged, work->len);
        free(work->staged);
        break;
    case SLEEP:
        nap(work->us);
        break;
    case KERNEL:
        nap(delay());
        if (lost == 0)
            lost = wanted("kernel", count("kernel"));
        if (lost == 0 && ptx_run(work->launch, reach_quickly) != 0)
            lost = ILLEGAL_ADDRESS;
        free(work->launch);
        break;
    case RECORD:
        if (work->event->come < work->which)
            work->event->come = work->which;
        break;
    case WAIT:
        while (work->event->come < work->which && lost == 0)
            pthread_cond_wait(&done, &lock);
        break;
    }
}

static void *work_off(void *argument)
{
    struct stream *stream = argument;

    pthread_mutex_lock(&lock);
    for (;;) {
        while (stream->first == NULL && !stream->destroyed)
            pthread_cond_wait(&stream->changed, &lock);
        struct work *work = stream->first;
        if (work == NULL)
            break;
        execute(work);
        stream->first = work->next;
        free(work);
        pthread_cond_broadcast(&done);
    }
    pthread_mutex_unlock(&lock);
    return NULL;
}

static struct stream *new_stream(struct context *context, unsigned flags)
{
    struct stream *stream = calloc(1, sizeof *stream);
    pthread_t thread;

    stream->context = context;
    stream->non_blocking = flags & NON_BLOCKING;
    pthread_cond_init(&stream->changed, NULL);
    if (pthread_create(&thread, NULL, work_off, stream) != 0)
        die("no thread");
    pthread_detach(thread);
    return stream;
}

/* The stream with this handle: small numbers name the default one of the current context. */
static struct stream *stream_of(void *handle)
{
    struct context *context = current();
    if ((uintptr_t)handle > 2)
        return handle;
    if (context && context->default_stream == NULL)
        context->default_stream = new_stream(context, 0);
    return context ? context->default_stream : NULL;
}

static int queue(void *handle, struct work wanted_work)
{
    struct stream *stream = stream_of(handle);
    if (stream == NULL || stream->destroyed || stream->context != current())
        return INVALID_HANDLE;
    if (stream->capture != CAPTURE_NONE)
        return 0; /* a node of the graph */
    struct work *work = malloc(sizeof *work);
    *work = wanted_work;
    work->next = NULL;
    if (stream->first)
        stream->last->next = work;
    else
        stream->first = work;
    stream->last = work;
    pthread_cond_signal(&stream->changed);
    const char *blocking = setting("CUDA_LAUNCH_BLOCKING");
    while (blocking && *blocking == '1' && stream->first)
        pthread_cond_wait(&done, &lock);
    return 0;
}

/* Waits until the default stream is empty. */
static void drain_default(void)
{
    struct stream *stream = stream_of(NULL);
    while (stream && stream->first)
        pthread_cond_wait(&done, &lock);
}

static int is_inside(const struct region *region, uint64_t address)
{
    return address >= region->start && address < region->start + region->len;
}

/* Waits until no upload to the region is under way. */
static void await_uploads(const struct region *region)
{
    for (int at = 0; at < DEVICES; at++) {
        struct stream *stream = contexts[at].default_stream;
        struct work *work = stream ? stream->first : NULL;
        while (work)
            if (work->kind == UPLOAD && is_inside(region, work->to)) {
                pthread_cond_wait(&done, &lock);
                work = stream->first;
            } else {
                work = work->next;
            }
    }
}

static void check_unused(const struct region *region, struct stream *stream)
{
    for (struct work *work = stream ? stream->first : NULL; work && lost == 0; work = work->next) {
        if ((work->kind == COPY || work->kind == UPLOAD) && (is_inside(region, work->to) || is_inside(region, work->from)))
            die("memory is freed while a copy is under way");
        for (int at = 0; work->kind == KERNEL && at < work->launch->ptx->parameter_count; at++)
            if (is_inside(region, work->launch->arguments[at]))
                die("memory is freed while a kernel is under way");
    }
}

/* The streams that are not default ones. */
static struct stream *streams[REGIONS_MAX];

static int forget(uint64_t start, int on_device)
{
    for (int at = 0; at < REGIONS_MAX; at++) {
        struct region *region = &regions[at];
        if (region->start != start || (region->shadow != NULL) != on_device || start == 0)
            continue;
        for (int other = 0; other < REGIONS_MAX; other++)
            check_unused(region, streams[other]);
        for (int other = 0; other < DEVICES; other++)
            check_unused(region, contexts[other].default_stream);
        if (on_device) {
            if (!region->imported)
                memset(region->shadow, 0xdd, region->len);
            munmap(region->shadow, region->len);
            munmap((void *)(uintptr_t)start, region->len);
            close(region->file);
        } else {
            free((void *)(uintptr_t)start);
        }
        memset(region, 0, sizeof *region);
        return 0;
    }
    return INVALID_VALUE;
}

static struct region *free_region(void)
{
    for (int at = 0; at < REGIONS_MAX; at++)
        if (regions[at].start == 0)
            return &regions[at];
    die("too many regions");
    return NULL;
}

/* Makes memory of the current device of a file, which is kept. */
static int map_device(int file, size_t len, int imported, uint64_t *address)
{
    void *shadow = mmap(NULL, len, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    void *seen = mmap(NULL, len, setting("STAND_IN_OPEN") ? PROT_READ | PROT_WRITE : PROT_NONE, MAP_SHARED, file, 0);
    if (shadow == MAP_FAILED || seen == MAP_FAILED)
        return OUT_OF_MEMORY;
    *free_region() = (struct region){(uintptr_t)seen, len, shadow, current(), file, imported, 0};
    *address = (uintptr_t)seen;
    return 0;
}

/* For tests. */

EXPORT long standInCount(const char *name)
{
    long found = 0;
    pthread_mutex_lock(&lock);
    for (int at = 0; at < NAMES_MAX && counts[at].name; at++)
        if (strcmp(counts[at].name, name) == 0)
            found = counts[at].count;
    pthread_mutex_unlock(&lock);
    return found;
}

EXPORT void standInSet(const char *name, const char *value)
{
    pthread_mutex_lock(&lock);
    int at = 0;
    while (at < SETTINGS_MAX && settings[at].name && strcmp(settings[at].name, name) != 0)
        at++;
    if (at == SETTINGS_MAX)
        die("too many settings");
    settings[at].name = strdup(name);
    settings[at].value = strdup(value);
    pthread_mutex_unlock(&lock);
}

EXPORT const char *standInTrace(void)
{
    return trace;
}

EXPORT int standInSleep(void *stream, unsigned us)
{
    int code = begin("standInSleep");
    return end(code ? code : queue(stream, (struct work){.kind = SLEEP, .us = us}));
}

/* The driver's interface. A kernel of the name "spin" takes as many nanoseconds as its argument
 * says, and does nothing else. */

EXPORT int cuModuleLoadData(void **module, const void *image)
{
    int code = begin_unsafe("cuModuleLoadData");
    if (code == 0 && current() == NULL)
        code = INVALID_CONTEXT;
    if (code == 0)
        *module = strstr(image, "spin") ? calloc(1, sizeof(struct ptx)) : ptx_read(image);
    return end(code);
}

EXPORT int cuModuleGetFunction(void **function, void *module, const char *name)
{
    const struct ptx *ptx = module;
    *function = module;
    return strcmp(name, *ptx->name ? ptx->name : "spin") == 0 ? 0 : INVALID_VALUE;
}

/* Launches keep what they need of a module. */
EXPORT int cuModuleUnload(void *module)
{
    (void)module;
    return end(begin_unsafe("cuModuleUnload"));
}

EXPORT int cuLaunchKernel(void *function, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, unsigned bz,
                          unsigned shared, void *stream, void **arguments, void **extra)
{
    const struct ptx *ptx = function;
    if (*ptx->name == 0)
        return standInSleep(stream, (unsigned)(*(uint64_t *)arguments[0] / 1000));
    int code = begin("cuLaunchKernel");
    if (code == 0 && (gx == 0 || bx == 0 || bx > 1024 || gy * gz * by * bz != 1 || shared || extra))
        code = INVALID_VALUE;
    if (code)
        return end(code);
    struct ptx_launch *launch = calloc(1, sizeof *launch);
    *launch = (struct ptx_launch){.ptx = ptx, .blocks = gx, .threads = bx};
    for (int at = 0; at < ptx->parameter_count; at++)
        launch->arguments[at] = *(uint64_t *)arguments[at];
    return end(queue(stream, (struct work){.kind = KERNEL, .launch = launch}));
}

EXPORT int cuInit(unsigned flags)
{
    int code = begin("cuInit");
    return end(code ? code : flags == 0 ? 0 : INVALID_VALUE);
}

EXPORT int cuGetErrorName(int code, const char **name)
{
    static const struct {
        int code;
        const char *name;
    } names[] = {
        {1, "CUDA_ERROR_INVALID_VALUE"},    {2, "CUDA_ERROR_OUT_OF_MEMORY"},    {201, "CUDA_ERROR_INVALID_CONTEXT"},
        {400, "CUDA_ERROR_INVALID_HANDLE"}, {700, "CUDA_ERROR_ILLEGAL_ADDRESS"}, {719, "CUDA_ERROR_LAUNCH_FAILED"},
    };
    for (size_t at = 0; at < sizeof names / sizeof names[0]; at++)
        if (names[at].code == code) {
            *name = names[at].name;
            return 0;
        }
    *name = NULL;
    return INVALID_VALUE;
}

EXPORT int cuDeviceGetCount(int *number)
{
    *number = DEVICES;
    return 0;
}

EXPORT int cuDeviceGet(int *device, int ordinal)
{
    *device = ordinal;
    return ordinal >= 0 && ordinal < DEVICES ? 0 : INVALID_VALUE;
}

EXPORT int cuDeviceGetName(char *name, int len, int device)
{
    snprintf(name, (size_t)len, "stand-in device %d", device);
    return 0;
}

EXPORT int cuDriverGetVersion(int *version)
{
    *version = 12040;
    return 0;
}

EXPORT int cuDevicePrimaryCtxRetain(void **retained, int device)
{
    int code = begin("cuDevicePrimaryCtxRetain");
    if (code == 0 && (device < 0 || device >= DEVICES))
        code = INVALID_VALUE;
    if (code == 0)
        *retained = &contexts[device];
    return end(code);
}

EXPORT int cuCtxSetCurrent(void *set)
{
    depth = depth > 0 ? depth : 1;
    stack[depth - 1] = set;
    return 0;
}

EXPORT int cuCtxPushCurrent_v2(void *pushed)
{
    int code = begin("cuCtxPushCurrent");
    if (pushed != &contexts[0] && pushed != &contexts[1])
        return end(code ? code : INVALID_CONTEXT);
    if (depth == STACK_MAX)
        die("contexts are pushed and not popped");
    stack[depth++] = pushed;
    /* Also a lost context may be pushed. */
    return end(code == lost ? 0 : code);
}

EXPORT int cuCtxPopCurrent_v2(void **popped)
{
    if (depth == 0)
        return INVALID_CONTEXT;
    *popped = stack[--depth];
    return 0;
}

EXPORT int cuCtxGetFlags(unsigned *flags)
{
    struct context *context = current();
    int code = begin("cuCtxGetFlags");
    if (code == 0 && context == NULL)
        code = INVALID_CONTEXT;
    if (code == 0)
        *flags = context->flags;
    return end(code);
}

EXPORT int cuCtxSetFlags(unsigned flags)
{
    struct context *context = current();
    int code = begin("cuCtxSetFlags");
    if (code == 0 && context == NULL)
        code = INVALID_CONTEXT;
    if (code == 0)
        context->flags = flags;
    return end(code);
}

EXPORT int cuCtxSynchronize(void)
{
    struct context *context = current();
    int code = begin("cuCtxSynchronize");
    for (int at = 0; at < REGIONS_MAX && code == 0; at++)
        while (streams[at] && streams[at]->context == context && streams[at]->first)
            pthread_cond_wait(&done, &lock);
    while (context && context->default_stream && context->default_stream->first)
        pthread_cond_wait(&done, &lock);
    return end(code ? code : lost);
}

EXPORT int cuMemAlloc_v2(uint64_t *address, size_t len)
{
    int code = begin_unsafe("cuMemAlloc");
    if (code == 0 && current() == NULL)
        code = INVALID_CONTEXT;
    if (code)
        return end(code);
    size_t page = (size_t)sysconf(_SC_PAGESIZE), whole = (len + page - 1) / page * page;
    int file = memfd_create("stand-in", MFD_CLOEXEC);
    if (file < 0 || ftruncate(file, (off_t)whole) != 0)
        return end(OUT_OF_MEMORY);
    return end(map_device(file, whole, 0, address));
}

EXPORT int cuMemFree_v2(uint64_t address)
{
    int code = begin_unsafe("cuMemFree");
    struct region *region = code ? NULL : region_of(address, 1);
    if (code == 0)
        drain_default();
    if (region && region->imported)
        code = INVALID_VALUE;
    return end(code ? code : forget(address, 1));
}

/* What a handle for other processes says. */
struct ipc {
    int process, file;
    size_t len;
    char rest[64 - 2 * sizeof(int) - sizeof(size_t)];
};

EXPORT int cuIpcGetMemHandle(struct ipc *handle, uint64_t address)
{
    int code = begin_unsafe("cuIpcGetMemHandle");
    struct region *region = region_of(address, 1);
    if (code == 0 && (region == NULL || region->start != address || !region->shadow || region->imported))
        code = INVALID_VALUE;
    if (code == 0)
        *handle = (struct ipc){.process = getpid(), .file = region->file, .len = region->len};
    return end(code);
}

EXPORT int cuIpcOpenMemHandle_v2(uint64_t *address, struct ipc handle, unsigned flags)
{
    char path[64];
    int code = begin_unsafe("cuIpcOpenMemHandle");
    if (code == 0 && (current() == NULL || handle.process == getpid()))
        code = INVALID_CONTEXT;
    if (code == 0 && flags != 1)
        code = INVALID_VALUE;
    if (code)
        return end(code);
    snprintf(path, sizeof path, "/proc/%d/fd/%d", handle.process, handle.file);
    int file = open(path, O_RDWR | O_CLOEXEC);
    return end(file < 0 ? INVALID_VALUE : map_device(file, handle.len, 1, address));
}

EXPORT int cuIpcCloseMemHandle(uint64_t address)
{
    int code = begin_unsafe("cuIpcCloseMemHandle");
    struct region *region = region_of(address, 1);
    if (code == 0 && (region == NULL || !region->imported))
        code = INVALID_VALUE;
    return end(code ? code : forget(address, 1));
}

EXPORT int cuMemHostAlloc(void **start, size_t len, unsigned flags)
{
    int code = begin_unsafe("cuMemHostAlloc");
    (void)flags;
    if (code == 0 && current() == NULL)
        code = INVALID_CONTEXT;
    if (code)
        return end(code);
    if (posix_memalign(start, 4096, len ? len : 1) != 0)
        return end(OUT_OF_MEMORY);
    memset(*start, 0xa5, len);
    *free_region() = (struct region){(uintptr_t)*start, len ? len : 1, NULL, current(), -1, 0, 0};
    return end(0);
}

EXPORT int cuMemFreeHost(void *start)
{
    int code = begin_unsafe("cuMemFreeHost");
    return end(code ? code : forget((uintptr_t)start, 0));
}

EXPORT int cuPointerGetAttribute(void *value, int attribute, uint64_t address)
{
    int code = begin("cuPointerGetAttribute");
    struct region *region = region_of(address, 1);
    const char *pool = setting("STAND_IN_POOL");

    if (code == 0 && region == NULL)
        code = INVALID_VALUE;
    if (code)
        return end(code);
    switch (attribute) {
    case ATTRIBUTE_CONTEXT:
        *(void **)value = pool ? NULL : region->context;
        break;
    case ATTRIBUTE_MEMORY_TYPE:
        *(unsigned *)value = region->shadow ? MEMORY_DEVICE : MEMORY_HOST;
        break;
    case ATTRIBUTE_DEVICE_ORDINAL:
        *(int *)value = region->context->ordinal;
        break;
    case ATTRIBUTE_SYNC_MEMOPS:
        *(unsigned *)value = region->synchronizes;
        break;
    default:
        code = INVALID_VALUE;
    }
    return end(code);
}

/* Memory out of a pool has no attribute that can be set. */
EXPORT int cuPointerSetAttribute(const void *value, int attribute, uint64_t address)
{
    int code = begin_unsafe("cuPointerSetAttribute");
    struct region *region = region_of(address, 1);

    if (code == 0 && current() == NULL)
        code = INVALID_CONTEXT;
    if (code == 0 && (region == NULL || !region->shadow || setting("STAND_IN_POOL")))
        code = INVALID_VALUE;
    if (code == 0 && attribute != ATTRIBUTE_SYNC_MEMOPS)
        code = INVALID_VALUE;
    if (code)
        return end(code);
    region->synchronizes = *(const unsigned *)value;
    await_uploads(region);
    return end(0);
}

/* A copy in the order of the default stream, for programs that test: what comes from the device is
   there when the call returns, and what goes there has left the host, or has come where that is
   wanted. */
static int copy_now(const char *name, uint64_t to, uint64_t from, size_t len)
{
    int code = begin_unsafe(name);
    if (code == 0 && current() == NULL)
        code = INVALID_CONTEXT;
    if (code == 0 && !is_on_device(name[8] == 'D' ? from : to))
        code = INVALID_VALUE;
    if (code == 0 && ((is_inside_any(to) && !region_of(to, len)) || (is_inside_any(from) && !region_of(from, len))))
        code = INVALID_VALUE;
    if (code)
        return end(code);
    drain_default();
    if (!is_on_device(to)) {
        memcpy(reach(to), reach(from), len);
        return end(0);
    }
    void *staged = malloc(len ? len : 1);
    memcpy(staged, reach(from), len);
    code = queue(NULL, (struct work){.kind = UPLOAD, .to = to, .len = len, .staged = staged});
    struct region *region = region_of(to, 1);
    if (code == 0 && (region->synchronizes || current()->flags & CONTEXT_SYNC_MEMOPS))
        await_uploads(region);
    return end(code);
}

EXPORT int cuMemcpyHtoD_v2(uint64_t to, const void *from, size_t len)
{
    return copy_now("cuMemcpyHtoD", to, (uintptr_t)from, len);
}

EXPORT int cuMemcpyDtoH_v2(void *to, uint64_t from, size_t len)
{
    return copy_now("cuMemcpyDtoH", (uintptr_t)to, from, len);
}

EXPORT int cuMemcpyAsync(uint64_t to, uint64_t from, size_t len, void *stream)
{
    int code = begin("cuMemcpyAsync");
    if (code == 0 && current() == NULL)
        code = INVALID_CONTEXT;
    if (code == 0 && ((is_inside_any(to) && !region_of(to, len)) || (is_inside_any(from) && !region_of(from, len))))
        code = INVALID_VALUE;
    return end(code ? code : queue(stream, (struct work){.kind = COPY, .to = to, .from = from, .len = len}));
}

EXPORT int cuStreamCreate(void **stream, unsigned flags)
{
    int code = begin_unsafe("cuStreamCreate");
    if (code == 0 && current() == NULL)
        code = INVALID_CONTEXT;
    for (int at = 0; at < REGIONS_MAX && code == 0; at++)
        if (streams[at] == NULL) {
            *stream = streams[at] = new_stream(current(), flags);
            return end(0);
        }
    return end(code ? code : OUT_OF_MEMORY);
}

EXPORT int cuStreamDestroy_v2(void *handle)
{
    struct stream *stream = handle;
    int code = begin("cuStreamDestroy");
    if (code == 0 && (stream == NULL || stream->destroyed))
        code = INVALID_HANDLE;
    if (code)
        return end(code);
    stream->destroyed = 1;
    pthread_cond_signal(&stream->changed);
    return end(0);
}

EXPORT int cuStreamWaitEvent(void *stream, void *handle, unsigned flags)
{
    struct event *event = handle;
    int code = begin("cuStreamWaitEvent");
    (void)flags;
    if (code == 0 && event->destroyed)
        code = INVALID_HANDLE;
    return end(code ? code : queue(stream, (struct work){.kind = WAIT, .event = event, .which = event->recorded}));
}

EXPORT int cuStreamSynchronize(void *handle)
{
    int code = begin_unsafe("cuStreamSynchronize");
    struct stream *stream = code ? NULL : stream_of(handle);
    while (stream && stream->first)
        pthread_cond_wait(&done, &lock);
    return end(code ? code : lost);
}

EXPORT int cuStreamIsCapturing(void *handle, int *status)
{
    int code = begin("cuStreamIsCapturing");
    struct stream *stream = code ? NULL : stream_of(handle);
    if (code)
        return end(code);
    if ((uintptr_t)handle <= 1 && captured && !captured->non_blocking)
        return end(CAPTURE_IMPLICIT);
    *status = stream ? stream->capture : CAPTURE_NONE;
    return end(0);
}

EXPORT int cuStreamBeginCapture_v2(void *handle, int how)
{
    struct stream *stream = handle;
    int code = begin("cuStreamBeginCapture");
    if (code == 0 && (captured || (uintptr_t)handle <= 2))
        code = CAPTURE_UNSUPPORTED;
    if (code)
        return end(code);
    stream->capture = CAPTURE_ACTIVE;
    captured = stream;
    capturing = how == MODE_GLOBAL;
    return end(0);
}

/* Says by its code whether the capture was spoilt. */
EXPORT int cuStreamEndCapture(void *handle, void **graph)
{
    struct stream *stream = handle;
    int code = begin("cuStreamEndCapture");
    if (code == 0 && stream->capture != CAPTURE_ACTIVE)
        code = CAPTURE_UNSUPPORTED + 1;
    stream->capture = CAPTURE_NONE;
    captured = NULL;
    capturing = 0;
    *graph = NULL;
    return end(code);
}

EXPORT int cuThreadExchangeStreamCaptureMode(int *exchanged)
{
    int before = mode;
    mode = *exchanged;
    *exchanged = before;
    return 0;
}

EXPORT int cuEventCreate(void **made, unsigned flags)
{
    int code = begin("cuEventCreate");
    struct event *event = code ? NULL : calloc(1, sizeof *event);
    (void)flags;
    if (code == 0 && current() == NULL)
        code = INVALID_CONTEXT;
    if (event)
        event->context = current();
    *made = event;
    return end(code);
}

/* Events are never freed: a stream may have to wait for one that was destroyed. */
EXPORT int cuEventDestroy_v2(void *handle)
{
    struct event *event = handle;
    int code = begin("cuEventDestroy");
    if (code == 0 && event->destroyed)
        code = INVALID_HANDLE;
    event->destroyed = 1;
    return end(code);
}

EXPORT int cuEventRecord(void *handle, void *stream)
{
    struct event *event = handle;
    int code = begin("cuEventRecord");
    if (code == 0 && (event->destroyed || event->context != current()))
        code = INVALID_HANDLE;
    if (code)
        return end(code);
    event->recorded++;
    return end(queue(stream, (struct work){.kind = RECORD, .event = event, .which = event->recorded}));
}

EXPORT int cuEventQuery(void *handle)
{
    struct event *event = handle;
    int code = begin_unsafe("cuEventQuery");
    if (code == 0 && event->destroyed)
        code = INVALID_HANDLE;
    return end(code ? code : event->come < event->recorded ? NOT_READY : 0);
}

EXPORT int cuEventSynchronize(void *handle)
{
    struct event *event = handle;
    int code = begin_unsafe("cuEventSynchronize");
    while (code == 0 && lost == 0 && event->come < event->recorded)
        pthread_cond_wait(&done, &lock);
    return end(code ? code : lost);
}
