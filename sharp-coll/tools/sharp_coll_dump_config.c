/* SPDX-License-Identifier: Apache-2.0
 *
 * sharp_coll_dump_config - prints the settings of libsharp_coll as the environment has them.
 */
#include <getopt.h>
#include <stdio.h>

#include "sharp/api/sharp.h"

static const char usage[] =
    "Print the settings of libsharp_coll with their values.\n"
    "\n"
    "Usage: sharp_coll_dump_config [-f] [-d] [-a]\n"
    "\n"
    "  -f, --full    all settings, what each means, and a title\n"
    "  -d, --doc     what each setting means\n"
    "  -a, --all     also settings that are accepted and change nothing here\n"
    "  -h, --help    print this\n"
    "\n"
    "Examples:\n"
    "  sharp_coll_dump_config\n"
    "  SHARP_COLL_LOG_LEVEL=4 sharp_coll_dump_config -f\n";

int main(int argc, char **argv)
{
    static const struct option options[] = {
        {"full", no_argument, NULL, 'f'},
        {"doc", no_argument, NULL, 'd'},
        {"all", no_argument, NULL, 'a'},
        {"help", no_argument, NULL, 'h'},
        {NULL, 0, NULL, 0},
    };
    int flags = SHARP_COLL_CONFIG_PRINT_CONFIG;
    for (int option; (option = getopt_long(argc, argv, "fdah", options, NULL)) != -1;) {
        switch (option) {
        case 'f':
            flags |= SHARP_COLL_CONFIG_PRINT_HEADER | SHARP_COLL_CONFIG_PRINT_DOC | SHARP_COLL_CONFIG_PRINT_HIDDEN;
            break;
        case 'd': flags |= SHARP_COLL_CONFIG_PRINT_DOC; break;
        case 'a': flags |= SHARP_COLL_CONFIG_PRINT_HIDDEN; break;
        case 'h': fputs(usage, stdout); return 0;
        default: fputs(usage, stderr); return 2;
        }
    }
    return sharp_coll_print_config(stdout, (enum config_print_flags)flags, argv[0]) == 0 ? 0 : 1;
}
