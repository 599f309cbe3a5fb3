/* How much a broker, or loopback itself, carries when the sender does next to nothing.
 *
 *   replay PORT FRAME-FILE ERROR-AT IN-FLIGHT SECONDS BYTES-MAX
 *       send one prebuilt request repeatedly, a few of them in flight; in each response the two
 *       bytes at ERROR-AT must be 0
 *   loopback SECONDS
 *       send a megabyte from one thread to another, over TCP
 *
 * Prints one JSON object. */
#define _GNU_SOURCE
#include "bytes.h"

#include <arpa/inet.h>
#include <pthread.h>
#include <stdio.h>
#include <unistd.h>

#define CHUNK_BYTES (1 << 20)

static void send_all(int s, const char *data, size_t size) {
    for (size_t done = 0; done < size;) {
        ssize_t sent = send(s, data + done, size - done, MSG_NOSIGNAL);
        if (sent <= 0) fail("the connection broke: %m");
        done += (size_t)sent;
    }
}

static void take_answer(bytes *b, size_t error_at) {
    for (;;) {
        size_t there = b->end - b->start;
        if (there >= 4) {
            uint32_t size;
            memcpy(&size, b->in + b->start, 4);
            size = ntohl(size) + 4;
            if (there >= size) {
                const char *answer = b->in + b->start + 4;
                if (error_at + 6 > size || answer[error_at] || answer[error_at + 1])
                    fail("the broker refused a batch");
                b->start += size;
                return;
            }
        }
        if (!bytes_more(b, 60000)) fail("no response arrived");
    }
}

static void report(long requests, double sent_bytes, uint64_t start) {
    printf("{\"messages\": %ld, \"bytes\": %.0f, \"seconds\": %.6f}\n", requests, sent_bytes,
           (double)(now_ns() - start) / 1e9);
}

static void replay(char **argv) {
    options o = {.host = "127.0.0.1", .port = atoi(argv[0])};
    size_t error_at = (size_t)atol(argv[2]);
    long in_flight = atol(argv[3]), sent = 0, answered = 0;
    double bytes_max = atof(argv[5]);
    FILE *file = fopen(argv[1], "rb");
    if (!file) fail("cannot read %s: %m", argv[1]);
    char *frame = malloc(IN_BYTES);
    size_t size = fread(frame, 1, IN_BYTES, file);
    bytes *b = bytes_open(&o);
    uint64_t start = now_ns(), end = start + (uint64_t)(atof(argv[4]) * 1e9);
    while (now_ns() < end && (double)sent * (double)size < bytes_max) {
        send_all(b->socket, frame, size);
        sent++;
        if (sent - answered >= in_flight) {
            take_answer(b, error_at);
            answered++;
        }
    }
    for (; answered < sent; answered++) take_answer(b, error_at);
    report(sent, (double)sent * (double)size, start);
}

static void *drain(void *context) {
    char *data = malloc(CHUNK_BYTES);
    int s = accept(*(int *)context, NULL, NULL);
    while (recv(s, data, CHUNK_BYTES, 0) > 0) continue;
    return NULL;
}

static void loopback(double seconds) {
    struct sockaddr_in address = {.sin_family = AF_INET};
    socklen_t size = sizeof address;
    int listener = socket(AF_INET, SOCK_STREAM, 0);
    pthread_t thread;
    inet_pton(AF_INET, "127.0.0.1", &address.sin_addr);
    if (bind(listener, (struct sockaddr *)&address, size) || listen(listener, 1))
        fail("cannot listen: %m");
    getsockname(listener, (struct sockaddr *)&address, &size);
    pthread_create(&thread, NULL, drain, &listener);
    int s = connect_tcp("127.0.0.1", ntohs(address.sin_port));
    char *data = calloc(1, CHUNK_BYTES);
    uint64_t start = now_ns(), end = start + (uint64_t)(seconds * 1e9);
    long sent = 0;
    for (; now_ns() < end; sent++) send_all(s, data, CHUNK_BYTES);
    close(s);
    pthread_join(thread, NULL);
    report(sent, (double)sent * CHUNK_BYTES, start);
}

int main(int argc, char **argv) {
    if (argc == 3 && !strcmp(argv[1], "loopback")) loopback(atof(argv[2]));
    else if (argc == 8 && !strcmp(argv[1], "replay")) replay(argv + 2);
    else fail("usage: replay PORT FILE ERROR-AT IN-FLIGHT SECONDS BYTES-MAX | loopback SECONDS");
    return 0;
}
