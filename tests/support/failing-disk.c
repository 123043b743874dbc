/* Preloaded into a server: syncs of files whose path holds FAILING_SYNC_NAME fail while the file FAILING_SYNC_SWITCH is there. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static int fails(int descriptor) {
  const char *name = getenv("FAILING_SYNC_NAME");
  const char *trigger = getenv("FAILING_SYNC_SWITCH");
  char link[64], path[1024];
  if (!name || !trigger || access(trigger, F_OK) != 0) return 0;
  snprintf(link, sizeof link, "/proc/self/fd/%d", descriptor);
  ssize_t length = readlink(link, path, sizeof path - 1);
  if (length < 0) return 0;
  path[length] = 0;
  return strstr(path, name) != NULL;
}

static int run(const char *call, int descriptor) {
  if (fails(descriptor)) {
    errno = EIO;
    return -1;
  }
  int (*original)(int) = (int (*)(int))dlsym(RTLD_NEXT, call);
  return original(descriptor);
}

int fdatasync(int descriptor) { return run("fdatasync", descriptor); }
int fsync(int descriptor) { return run("fsync", descriptor); }
