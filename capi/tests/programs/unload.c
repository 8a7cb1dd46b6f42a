/* SPDX-License-Identifier: Apache-2.0
 *
 * Loads the library, has an error on several threads at the same moment, which log it if the
 * environment asks for that, and unloads it. Nothing of the library stays mapped, and the threads
 * end as usual.
 */
#include <dlfcn.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "tributary.h"

typedef int (*init_call)(const trib_params *, trib_context **);
typedef const char *(*text_call)(void);

static void *library;
static pthread_barrier_t begun, failed, unloaded;

enum { OTHERS = 7 };

static int is_mapped(void)
{
    char line[512];
    int found = 0;
    FILE *maps = fopen("/proc/self/maps", "r");
    while (maps && fgets(line, sizeof line, maps))
        found |= strstr(line, "libtributary") != NULL;
    if (maps)
        fclose(maps);
    return found;
}

static int fails_with_words(void)
{
    init_call init = (init_call)(intptr_t)dlsym(library, "trib_init");
    text_call last_error = (text_call)(intptr_t)dlsym(library, "trib_last_error");
    trib_params params;
    trib_context *context = NULL;
    memset(&params, 0, sizeof params);
    params.struct_size = sizeof params;
    params.rank = 5;
    params.size = 2;
    return init && last_error && init(&params, &context) == TRIB_ERR_INVALID && last_error()[0] != 0;
}

static void *other(void *unused)
{
    (void)unused;
    pthread_barrier_wait(&begun);
    int ok = fails_with_words();
    pthread_barrier_wait(&failed);
    pthread_barrier_wait(&unloaded);
    return ok ? &library : NULL;
}

int main(int argc, char **argv)
{
    pthread_t threads[OTHERS];
    library = argc > 1 ? dlopen(argv[1], RTLD_NOW | RTLD_LOCAL) : NULL;
    if (!library || !is_mapped())
        return 1;
    pthread_barrier_init(&begun, NULL, 1 + OTHERS);
    pthread_barrier_init(&failed, NULL, 1 + OTHERS);
    pthread_barrier_init(&unloaded, NULL, 1 + OTHERS);
    for (int i = 0; i < OTHERS; i++)
        if (pthread_create(&threads[i], NULL, other, NULL) != 0)
            return 2;
    pthread_barrier_wait(&begun);
    int ok = fails_with_words();
    pthread_barrier_wait(&failed);
    ok &= dlclose(library) == 0 && !is_mapped();
    pthread_barrier_wait(&unloaded);
    for (int i = 0; i < OTHERS; i++) {
        void *here = NULL;
        pthread_join(threads[i], &here);
        ok &= here != NULL;
    }
    return ok ? 0 : 3;
}
