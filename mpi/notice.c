/* SPDX-License-Identifier: Apache-2.0 */
#include "notice.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

void notice(const char *format, ...)
{
    static const char prefix[] = "tributary: ";
    char line[1536];
    va_list arguments;
    size_t length = sizeof prefix - 1;

    memcpy(line, prefix, length);
    va_start(arguments, format);
    int wanted = vsnprintf(line + length, sizeof line - length - 1, format, arguments);
    va_end(arguments);
    if (wanted < 0)
        return;
    length = strlen(line);
    line[length++] = '\n';
    for (size_t done = 0; done < length;) {
        ssize_t written = write(STDERR_FILENO, line + done, length - done);
        if (written <= 0)
            return; /* a closed stderr must not stop the program */
        done += (size_t)written;
    }
}
