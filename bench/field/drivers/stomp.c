/* ActiveMQ through STOMP, implemented here: persistent messages, a receipt for each. */
#define _GNU_SOURCE
#include "bytes.h"

#include <stdio.h>

#define WAIT_MS 100
#define DEADLINE_MS 60000

typedef struct {
    bytes *line;
    const char *topic;
    long window;
    long waiting;
} producer_state;

const char *driver_client(void) { return "STOMP 1.1 over a socket, C"; }

/* Return the next whole frame and its body, or NULL if none arrives in time. */
static char *next_frame(bytes *b, int wait_ms, char **body, size_t *body_size) {
    for (;;) {
        while (b->start < b->end && b->in[b->start] == '\n') b->start++; /* heartbeats */
        char *head = b->in + b->start, *gap = memmem(head, b->end - b->start, "\n\n", 2);
        if (gap) {
            *gap = 0;
            char *length = strstr(head, "\ncontent-length:");
            char *nul = NULL;
            size_t left = b->end - b->start - (size_t)(gap + 2 - head);
            if (length) {
                size_t size = (size_t)atol(length + 16);
                if (left > size) nul = gap + 2 + size;
            } else nul = memchr(gap + 2, 0, left);
            if (nul) {
                *body = gap + 2;
                *body_size = (size_t)(nul - *body);
                b->start = (size_t)(nul + 1 - b->in);
                if (!strncmp(head, "ERROR", 5)) fail("activemq: %s", head);
                return head;
            }
            *gap = '\n';
        }
        if (!bytes_more(b, wait_ms)) return NULL;
    }
}

static bytes *open_stomp(const options *o) {
    static const char hello[] = "CONNECT\naccept-version:1.1\nhost:localhost\nheart-beat:0,0\n\n";
    bytes *b = bytes_open(o);
    char *body;
    size_t size;
    bytes_put(b, hello, sizeof hello); /* with the NUL that ends a frame */
    bytes_send(b);
    if (!next_frame(b, DEADLINE_MS, &body, &size)) fail("activemq does not answer");
    return b;
}

void driver_create(const options *o) { (void)o; } /* a queue starts with its first use */

void *producer_open(const options *o) {
    producer_state *p = calloc(1, sizeof *p);
    *p = (producer_state){open_stomp(o), o->topic, o->window, 0};
    return p;
}

static void settle(producer_state *p, long down_to, int wait_ms) {
    char *body;
    size_t size;
    bytes_send(p->line);
    while (p->waiting > down_to) {
        if (!next_frame(p->line, wait_ms, &body, &size)) {
            if (wait_ms) fail("activemq: no receipt arrived");
            return;
        }
        p->waiting--;
    }
}

void producer_send(void *producer, const char *data, size_t size, int copy) {
    (void)copy;
    producer_state *p = producer;
    char head[256];
    int length = snprintf(head, sizeof head,
                          "SEND\ndestination:/queue/%s\npersistent:true\nreceipt:r\n"
                          "content-length:%zu\n\n",
                          p->topic, size);
    bytes_put(p->line, head, (size_t)length);
    bytes_put(p->line, data, size);
    bytes_put(p->line, "", 1);
    if (++p->waiting >= p->window) settle(p, p->window / 2, DEADLINE_MS);
}

void producer_push(void *producer) { settle(producer, 0, 0); }
void producer_flush(void *producer) { settle(producer, 0, DEADLINE_MS); }

void *consumer_open(const options *o) {
    bytes *b = open_stomp(o);
    char text[256];
    int length = snprintf(text, sizeof text,
                          "SUBSCRIBE\nid:1\ndestination:/queue/%s\nack:auto\n"
                          "activemq.prefetchSize:1000\n\n",
                          o->topic);
    bytes_put(b, text, (size_t)length + 1);
    bytes_send(b);
    return b;
}

long consumer_poll(void *consumer, on_message take, void *context) {
    char *body;
    size_t size;
    if (!next_frame(consumer, WAIT_MS, &body, &size)) return 0;
    take(body, size, context);
    return 1;
}
