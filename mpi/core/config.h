/* SPDX-License-Identifier: Apache-2.0
 *
 * The settings of the interposer. Rank 0 reads them from its environment and gives them to all
 * ranks, so that no decision that must be the same everywhere depends on a rank's own environment.
 */
#ifndef TRIB_MPI_CONFIG_H
#define TRIB_MPI_CONFIG_H

#include "collective.h"

#include <stdbool.h>
#include <stdint.h>

enum mode {
    MODE_OFF,    /* everything stays with the MPI; silent */
    MODE_ON,     /* through the tree where that is worth while */
    MODE_FORCE,  /* through the tree wherever it can do the operation */
    MODE_REPORT, /* nothing goes through the tree; the report counts what would have */
    MODE_REQUIRE, /* as MODE_FORCE, and the program ends where a communicator can have no tree */
};

#define CONFIG_DTYPES 256 /* trib_dtype, pairs included, is a byte */
#define CONFIG_TEXT 1024
#define CONFIG_QUOTA 512

/* The settings as plain bytes. All ranks have the same layout, because the struct is broadcast as
 * it is. */
struct config {
    uint32_t mode;
    uint32_t report;     /* 1: figures are collected and shown in MPI_Finalize */
    uint32_t timeout_ms; /* of joining the job, making a group, and reaching another host of a dead
                          * node */
    uint32_t profile;    /* 1: the report tells waiting for the last rank from the rest */
    uint32_t sums;       /* enum trib_sums: how sums of floating-point numbers are taken */
    uint32_t min_calls;  /* communicators with fewer calls for the tree stay with the MPI */
    uint64_t program[2]; /* what tells this program from others (once.h) */
    uint64_t min_bytes;  /* shorter vectors stay with the MPI */
    uint64_t max_bytes;  /* longer vectors stay with the MPI */
    uint64_t max_allreduce;         /* the same for allreduces alone */
    uint64_t min_ranks, min_hosts; /* smaller communicators stay with the MPI */
    uint8_t disabled[(COLLECTIVES + 7) / 8]; /* one bit per collective that stays with the MPI */
    char quota[CONFIG_QUOTA];      /* what the job asks for, in the form of TRIB_QUOTA */
    uint32_t supported[CONFIG_DTYPES]; /* one bit per trib_op: what rank 0's library says the tree
                                        * can do */
    char manager[CONFIG_TEXT];         /* TRIB_MANAGER; empty: not set */
};

/* Reads the settings from this process's environment. A value that makes no sense is named on
 * stderr and replaced by its default. */
void config_read(struct config *config);

/* Whether this process's environment says that a program without the tree is to end. Nothing is
 * said of what makes no sense. */
bool config_requires(void);

/* Reads a whole number from this process's environment. Returns false if there is none, with a line
 * on stderr if there is something else. */
bool config_read_number(const char *variable, uint64_t *number);

/* Asks the fabric for this much of a field of the quota, unless it was asked for already. */
void config_ask(struct config *config, const char *field, const char *much);

/* Leaves the collective of this name to the MPI, in both forms, the usual one and that for large
 * counts: ranks may mix them in one operation. Returns false if there is none. */
bool config_disable(struct config *config, const char *name);
bool config_is_disabled(const struct config *config, enum collective collective);

/* Whether the tree is to be used wherever it can be. */
bool config_is_forced(const struct config *config);

/* The time limit as this process's own environment has it, for the time before ranks can talk.
 * Nothing is said about a value that makes no sense. */
uint32_t config_timeout_ms(void);

#endif
