/* Preloaded into a program: every file system is of the type FILE_SYSTEM_TYPE, a number of statfs(2) in hexadecimal. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdlib.h>
#include <sys/vfs.h>

static void retype(__fsword_t *type) {
  const char *given = getenv("FILE_SYSTEM_TYPE");
  if (given) *type = strtol(given, NULL, 16);
}

int statfs(const char *path, struct statfs *found) {
  int (*original)(const char *, struct statfs *) =
      (int (*)(const char *, struct statfs *))dlsym(RTLD_NEXT, "statfs");
  int result = original(path, found);
  if (result == 0) retype(&found->f_type);
  return result;
}

int statfs64(const char *path, struct statfs64 *found) {
  int (*original)(const char *, struct statfs64 *) =
      (int (*)(const char *, struct statfs64 *))dlsym(RTLD_NEXT, "statfs64");
  int result = original(path, found);
  if (result == 0) retype(&found->f_type);
  return result;
}
