/* RabbitMQ's streams through their own binary protocol, implemented here: there is no C library.
 *
 * Messages travel as AMQP 1.0 data sections, up to 100 of them in one frame, as the Java client
 * does by default. The layout of the frames is that of the stream plugin's protocol document. */
#include "bytes.h"
#include "numbers.h"

#include <stdio.h>

#define WAIT_MS 100
#define DEADLINE_MS 60000
#define FRAME_MESSAGES_MAX 100
#define FRAME_BYTES_MAX (512 << 10)
#define CREDIT 10
#define CHUNK_HEAD_BYTES 48
#define SECTION_BYTES 8

enum {
    DECLARE_PUBLISHER = 1, PUBLISH = 2, CONFIRM = 3, PUBLISH_ERROR = 4, SUBSCRIBE = 7, DELIVER = 8,
    CREDIT_MORE = 9, CREATE = 13, PEER_PROPERTIES = 17, SASL_HANDSHAKE = 18, SASL_AUTHENTICATE = 19,
    TUNE = 20, OPEN = 21, ANSWER = 0x8000
};

typedef struct {
    const char *data;
    size_t size;
    int key;
} frame;

typedef struct {
    bytes *line;
    long window;
    long waiting;
    uint64_t sent;
    char *messages; /* of the frame that is being filled */
    size_t filled;
    uint32_t count;
    uint64_t begun; /* when the first of them was added */
    uint64_t linger_ns;
} producer_state;

const char *driver_client(void) { return "stream protocol over a socket, C"; }

static void put_frame(bytes *b, int key, const char *body, size_t size) {
    char head[8];
    put16(put16(put32(head, (uint32_t)size + 4), (unsigned)key), 1);
    bytes_put(b, head, sizeof head);
    bytes_put(b, body, size);
}

static int next_frame(bytes *b, int wait_ms, frame *found) {
    for (;;) {
        size_t there = b->end - b->start;
        if (there >= 4) {
            uint32_t size = get32(b->in + b->start);
            if (there >= size + 4) {
                const char *at = b->in + b->start + 4;
                *found = (frame){at + 4, size - 4, (int)get16(at)};
                b->start += size + 4;
                return 1;
            }
        }
        if (!bytes_more(b, wait_ms)) return 0;
    }
}

/* Send a request, whose body starts after 4 free bytes for its number, and await its response. */
static void ask(bytes *b, int key, char *body, char *end) {
    frame answer;
    put32(body, 1);
    put_frame(b, key, body, (size_t)(end - body));
    bytes_send(b);
    do {
        if (!next_frame(b, DEADLINE_MS, &answer)) fail("rabbitmq: no response to %d", key);
    } while (answer.key != (key | ANSWER));
    if (get16(answer.data + 4) != 1)
        fail("rabbitmq: %d was answered with code %u", key, get16(answer.data + 4));
}

static bytes *open_stream(const options *o) {
    static const char secret[] = "\0guest\0guest";
    char body[256], *at;
    frame tune;
    bytes *b = bytes_open(o);
    ask(b, PEER_PROPERTIES, body, put32(body + 4, 0));
    ask(b, SASL_HANDSHAKE, body, body + 4);
    at = put32(put_text(body + 4, "PLAIN"), sizeof secret - 1);
    memcpy(at, secret, sizeof secret - 1);
    ask(b, SASL_AUTHENTICATE, body, at + sizeof secret - 1);
    if (!next_frame(b, DEADLINE_MS, &tune) || tune.key != TUNE) fail("rabbitmq: no tune arrived");
    put32(put32(body, get32(tune.data)), 0); /* their largest frame, no heartbeats */
    put_frame(b, TUNE, body, 8);
    ask(b, OPEN, body, put_text(body + 4, "/"));
    return b;
}

void driver_create(const options *o) {
    char body[256];
    ask(open_stream(o), CREATE, body, put32(put_text(body + 4, o->topic), 0));
}

void *producer_open(const options *o) {
    char body[256];
    producer_state *p = calloc(1, sizeof *p);
    *p = (producer_state){.line = open_stream(o), .window = o->window};
    if (o->linger_ms > 0) p->linger_ns = (uint64_t)(o->linger_ms * 1e6);
    p->messages = malloc(OUT_BYTES);
    body[4] = 1;
    ask(p->line, DECLARE_PUBLISHER, body, put_text(put_text(body + 5, ""), o->topic));
    return p;
}

static void send_frame(producer_state *p) {
    if (!p->count) return;
    p->messages[0] = 1;
    put32(p->messages + 1, p->count);
    put_frame(p->line, PUBLISH, p->messages, p->filled);
    p->count = 0;
}

static void settle(producer_state *p, long down_to, int wait_ms) {
    frame came;
    bytes_send(p->line);
    while (p->waiting > down_to) {
        if (!next_frame(p->line, wait_ms, &came)) {
            if (wait_ms) fail("rabbitmq: no confirm arrived");
            return;
        }
        if (came.key == PUBLISH_ERROR) fail("rabbitmq: a message was refused");
        if (came.key == CONFIRM) p->waiting -= get32(came.data + 1);
    }
}

void producer_send(void *producer, const char *data, size_t size, int copy) {
    (void)copy;
    producer_state *p = producer;
    static const char section[] = {0, 0x53, 0x75, (char)0xb0};
    if (!p->count) {
        p->filled = 5;
        p->begun = p->linger_ns ? now_ns() : 0;
    }
    char *at = put32(put64(p->messages + p->filled, p->sent++), (uint32_t)size + SECTION_BYTES);
    memcpy(at, section, sizeof section);
    at = put32(at + sizeof section, (uint32_t)size);
    memcpy(at, data, size);
    p->filled = (size_t)(at + size - p->messages);
    p->count++;
    p->waiting++;
    if (p->count == FRAME_MESSAGES_MAX || p->filled > FRAME_BYTES_MAX) send_frame(p);
    if (p->waiting >= p->window) {
        send_frame(p);
        settle(p, p->window / 2, DEADLINE_MS);
    }
}

void producer_push(void *producer) {
    producer_state *p = producer;
    if (!p->linger_ns || now_ns() - p->begun >= p->linger_ns) send_frame(p);
    settle(p, 0, 0);
}

void producer_flush(void *producer) {
    send_frame(producer);
    settle(producer, 0, DEADLINE_MS);
}

void *consumer_open(const options *o) {
    char body[256], *at;
    bytes *b = open_stream(o);
    body[4] = 1;
    at = put_text(body + 5, o->topic);
    at = put32(put16(put16(at, 1), CREDIT), 0); /* from the first message */
    ask(b, SUBSCRIBE, body, at);
    return b;
}

long consumer_poll(void *consumer, on_message take, void *context) {
    frame came;
    char more[3] = {1};
    do {
        if (!next_frame(consumer, WAIT_MS, &came)) return 0;
    } while (came.key != DELIVER);
    const char *chunk = came.data + 1, *at = chunk + CHUNK_HEAD_BYTES;
    unsigned count = get16(chunk + 2);
    for (unsigned i = 0; i < count; i++) {
        uint32_t size = get32(at);
        if (size & 0x80000000u) fail("rabbitmq: compressed batches were not requested");
        take(at + 4 + SECTION_BYTES, size - SECTION_BYTES, context);
        at += 4 + size;
    }
    put16(more + 1, 1);
    put_frame(consumer, CREDIT_MORE, more, sizeof more);
    bytes_send(consumer);
    return (long)count;
}
