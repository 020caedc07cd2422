/* clang --target=wasm32-wasi -Os -Wl,--strip-all -o files.wasm files.c

   Copies a file of the folder `work` in upper case to `work/out/upper.txt`, and lists folders. */
#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static void try(const char *what, int result) {
    printf("%s: %s\n", what, result < 0 ? strerror(errno) : "done");
}

static void list(const char *path) {
    DIR *folder = opendir(path);
    for (struct dirent *entry; folder && (entry = readdir(folder));)
        printf("%s/%s%s\n", path, entry->d_name, entry->d_type == DT_DIR ? "/" : "");
    if (folder)
        closedir(folder);
}

int main(void) {
    char text[64];
    struct stat found;
    int in = open("work/text.txt", O_RDONLY);
    ssize_t count = read(in, text, sizeof text);
    for (ssize_t at = 0; at < count; at++)
        text[at] = toupper(text[at]);
    try("create a folder", mkdir("work/out", 0777));
    int out = open("work/out/upper.txt", O_RDWR | O_CREAT | O_TRUNC, 0666);
    try("write", write(out, text, count));
    try("write at 2", pwrite(out, "**", 2, 2));
    try("append", write(out, "end\n", 4));
    try("size", fstat(out, &found));
    printf("%lld bytes, at %lld\n", (long long)found.st_size, (long long)lseek(out, -2, SEEK_CUR));
    close(out);
    list("work");
    list("work/out");
    try("create again", open("work/out/upper.txt", O_CREAT | O_EXCL | O_WRONLY, 0666));
    try("rename", rename("work/out/upper.txt", "work/moved.txt"));
    try("remove a folder", rmdir("work/out"));
    try("remove it again", rmdir("work/out"));
    try("leave the folder", open("work/../../secret.txt", O_RDONLY));
    try("another folder", open("other/text.txt", O_RDONLY));
    try("write to a folder", open("work", O_WRONLY));
    try("link", symlink("text.txt", "work/link"));
    return 0;
}
