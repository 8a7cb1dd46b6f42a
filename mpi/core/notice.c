/* SPDX-License-Identifier: Apache-2.0 */
#include "notice.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <time.h>
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

void notice_wait_until_read(void)
{
    static const struct timespec millisecond = {.tv_nsec = 1000 * 1000};
    struct stat about;
    int left = 0;

    if (fstat(STDERR_FILENO, &about) != 0 || !S_ISFIFO(about.st_mode))
        return;
    for (int tries = 0; tries < 1000; tries++) {
        if (ioctl(STDERR_FILENO, FIONREAD, &left) != 0 || left == 0)
            return;
        nanosleep(&millisecond, NULL);
    }
}
