/* SPDX-License-Identifier: Apache-2.0
 *
 * The settings of the interposer. Rank 0 reads them from its environment and gives them to all
 * ranks, so that no decision that must be the same everywhere depends on a rank's own environment.
 */
#ifndef TRIB_MPI_CONFIG_H
#define TRIB_MPI_CONFIG_H

#include <stdbool.h>
#include <stdint.h>

enum mode {
    MODE_OFF,    /* everything stays with the MPI; silent */
    MODE_ON,     /* through the tree where that is worth while */
    MODE_FORCE,  /* through the tree wherever it can do the operation */
    MODE_REPORT, /* nothing goes through the tree; the report counts what would have */
};

#define CONFIG_DTYPES 256 /* trib_dtype, pairs included, is a byte */
#define CONFIG_TEXT 1024

/* The settings as plain bytes. All ranks have the same layout, because the struct is broadcast as
 * it is. */
struct config {
    uint32_t mode;
    uint32_t report;     /* 1: figures are collected and shown in MPI_Finalize */
    uint32_t timeout_ms; /* of joining the job, making a group, and reaching another host of a dead
                          * node */
    uint32_t padding;
    uint64_t min_bytes;  /* shorter vectors stay with the MPI */
    uint64_t max_bytes;  /* longer vectors stay with the MPI */
    uint32_t supported[CONFIG_DTYPES]; /* one bit per trib_op: what rank 0's library says the tree
                                        * can do */
    char manager[CONFIG_TEXT];         /* TRIB_MANAGER; empty: not set */
};

/* Reads the settings from this process's environment. A value that makes no sense is named on
 * stderr and replaced by its default. */
void config_read(struct config *config);

/* Whether this process's own environment asks for the tree. This is for programs whose ranks cannot
 * agree. */
bool config_is_on(void);

/* The time limit as this process's own environment has it, for the time before ranks can talk.
 * Nothing is said about a value that makes no sense. */
uint32_t config_timeout_ms(void);

#endif
