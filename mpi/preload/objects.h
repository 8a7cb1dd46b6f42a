/* SPDX-License-Identifier: Apache-2.0
 *
 * Functions in the program and the libraries that it has loaded, ours left out. An address in an
 * object stands for the object.
 */
#ifndef TRIB_MPI_OBJECTS_H
#define TRIB_MPI_OBJECTS_H

/* Where the object at address is loaded; NULL if there is none. */
const void *objects_base(const void *address);

/* A handle for dlsym on the object at address; RTLD_DEFAULT for the program itself. */
void *objects_handle(const void *address);

/* The function with this name in what the object at caller was linked with, or else behind this
 * library in the order in which the program's names are looked up. NULL if there is none. */
void *objects_find_near(const char *name, const void *caller);

/* The same, or else in anything that is loaded. */
void *objects_find(const char *name, const void *caller);

#endif
