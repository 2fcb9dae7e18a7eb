/* One fault in C with its twin: `program FAULT TRANSPORT faulty|healthy`. Messages are 4 bytes of length and as many more. */
#include <arpa/inet.h>
#include <netinet/tcp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

static const char *fault;
static int is_faulty;

static int is_fault(const char *name) { return is_faulty && !strcmp(fault, name); }
static int is_of(const char *name) { return !strcmp(fault, name); }

static void set(int fd, int level, int option, int value) { setsockopt(fd, level, option, &value, sizeof value); }

/* Sends all bytes; a reset peer ends the program. */
static void send_all(int fd, const char *bytes, size_t length) {
    while (length > 0) {
        ssize_t sent = write(fd, bytes, length);
        if (sent <= 0) exit(0);
        bytes += sent, length -= sent;
    }
}

static void send_message(int fd, unsigned length, int in_pieces) {
    char *message = calloc(1, length + 4);
    unsigned header = htonl(length);
    memcpy(message, &header, 4);
    if (in_pieces) {
        send_all(fd, message, 4);
        send_all(fd, message + 4, length);
    } else {
        send_all(fd, message, length + 4);
    }
    free(message);
}

static int receive(int fd, char *bytes, size_t length, int pause_us) {
    while (length > 0) {
        if (pause_us) usleep(pause_us);
        ssize_t received = read(fd, bytes, pause_us && length > 4096 ? 4096 : length);
        if (received <= 0) return 0;
        bytes += received, length -= received;
    }
    return 1;
}

static int receive_message(int fd, int pause_us) {
    unsigned length;
    if (!receive(fd, (char *)&length, 4, 0)) return 0;
    char *body = malloc(ntohl(length));
    int is_whole = receive(fd, body, ntohl(length), pause_us);
    free(body);
    return is_whole;
}

static unsigned response_bytes(void) {
    return is_of("c-send-buffer") || is_of("c-receive-window") || is_of("c-slow-reader") ? 400000 : 600;
}

static void serve(int listener) {
    signal(SIGCHLD, SIG_IGN);
    for (;;) {
        int fd = accept(listener, 0, 0);
        if (fork()) {
            close(fd);
            continue;
        }
        set(fd, IPPROTO_TCP, TCP_NODELAY, !is_fault("c-nagle"));
        if (is_fault("c-send-buffer")) set(fd, SOL_SOCKET, SO_SNDBUF, 8192);
        while (receive_message(fd, 0)) {
            if (is_fault("c-think")) usleep(300000);
            send_message(fd, response_bytes(), is_fault("c-nagle"));
        }
        _exit(0);
    }
}

static int connect_to(struct sockaddr_in *address) {
    int fd = socket(AF_INET, SOCK_STREAM, 0);
    set(fd, IPPROTO_TCP, TCP_NODELAY, 1);
    if (is_fault("c-receive-window") || is_fault("c-slow-reader")) set(fd, SOL_SOCKET, SO_RCVBUF, 8192);
    if (connect(fd, (struct sockaddr *)address, sizeof *address)) exit(1);
    return fd;
}

int main(int count, char **words) {
    if (count < 4) return 2;
    fault = words[1], is_faulty = !strcmp(words[3], "faulty");
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t size = sizeof address;
    int listener = socket(AF_INET, SOCK_STREAM, 0);
    bind(listener, (struct sockaddr *)&address, size);
    listen(listener, 64);
    getsockname(listener, (struct sockaddr *)&address, &size);
    pid_t server = fork();
    if (!server) serve(listener);
    close(listener);
    int fd = connect_to(&address);
    int requests = response_bytes() > 600 ? 2 : 8;
    for (int number = 0; number < requests; number++) {
        if (number > 0 && is_fault("c-per-request")) {
            close(fd);
            fd = connect_to(&address);
        }
        send_message(fd, 90, 0);
        if (!receive_message(fd, is_fault("c-slow-reader") ? 8000 : 0)) return 1;
    }
    close(fd);
    usleep(20000);
    kill(server, SIGTERM);
    waitpid(server, 0, 0);
    return 0;
}
