/* A connection with its unread input and unsent output. */
#ifndef FIELD_BYTES_H
#define FIELD_BYTES_H

#include "driver.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#define IN_BYTES (64 << 20) /* a stream's chunk is many megabytes if its disk is slow */
#define OUT_BYTES (2 << 20)

typedef struct {
    int socket;
    char *in;
    size_t start, end;
    char *out;
    size_t filled;
} bytes;

static bytes *bytes_open(const options *o) {
    bytes *b = calloc(1, sizeof *b);
    b->socket = connect_tcp(o->host, o->port);
    b->in = malloc(IN_BYTES);
    b->out = malloc(OUT_BYTES);
    return b;
}

static void bytes_send(bytes *b) {
    for (size_t done = 0; done < b->filled;) {
        ssize_t sent = send(b->socket, b->out + done, b->filled - done, MSG_NOSIGNAL);
        if (sent < 0) fail("the connection broke: %m");
        done += (size_t)sent;
    }
    b->filled = 0;
}

static void bytes_put(bytes *b, const void *data, size_t size) {
    if (size > OUT_BYTES) fail("a message is larger than the buffer");
    if (b->filled + size > OUT_BYTES) bytes_send(b);
    memcpy(b->out + b->filled, data, size);
    b->filled += size;
}

/* Read more with a timeout; return 0 if nothing arrived. */
static int bytes_more(bytes *b, int wait_ms) {
    struct pollfd readable = {.fd = b->socket, .events = POLLIN};
    if (b->start == b->end) b->start = b->end = 0;
    if (b->end == IN_BYTES) {
        memmove(b->in, b->in + b->start, b->end - b->start);
        b->end -= b->start;
        b->start = 0;
        if (b->end == IN_BYTES) fail("a frame is larger than the buffer");
    }
    if (poll(&readable, 1, wait_ms) <= 0) return 0;
    ssize_t came = recv(b->socket, b->in + b->end, IN_BYTES - b->end, 0);
    if (came <= 0) fail("the connection was closed");
    b->end += (size_t)came;
    return 1;
}

#endif
