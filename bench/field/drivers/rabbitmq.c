/* RabbitMQ's classic and quorum queues through librabbitmq (AMQP 0.9.1).
 *
 * Messages are persistent and confirmed; consumers acknowledge a few hundred at a time. */
#include "driver.h"

#include <amqp.h>
#include <amqp_tcp_socket.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>

#define CHANNEL 1
#define PREFETCH 1000
#define ACKNOWLEDGE_EVERY 200
#define PERSISTENT 2

typedef struct {
    amqp_connection_state_t rabbit;
    const char *topic;
    long window;
    uint64_t sent;
    uint64_t confirmed;
} producer_state;

typedef struct {
    amqp_connection_state_t rabbit;
    long unacknowledged;
} consumer_state;

const char *driver_client(void) {
    static char text[64];
    snprintf(text, sizeof text, "librabbitmq %s, C", amqp_version());
    return text;
}

static void check(amqp_rpc_reply_t reply, const char *what) {
    if (reply.reply_type == AMQP_RESPONSE_NORMAL) return;
    if (reply.reply_type == AMQP_RESPONSE_LIBRARY_EXCEPTION)
        fail("rabbitmq: %s: %s", what, amqp_error_string2(reply.library_error));
    fail("rabbitmq: %s was refused", what);
}

static amqp_connection_state_t open_rabbit(const options *o) {
    amqp_connection_state_t rabbit = amqp_new_connection();
    amqp_socket_t *socket = amqp_tcp_socket_new(rabbit);
    if (amqp_socket_open(socket, o->host, o->port)) fail("rabbitmq: cannot connect");
    check(amqp_login(rabbit, "/", 0, 131072, 0, AMQP_SASL_METHOD_PLAIN, "guest", "guest"), "login");
    amqp_channel_open(rabbit, CHANNEL);
    check(amqp_get_rpc_reply(rabbit), "channel");
    return rabbit;
}

void driver_create(const options *o) {
    amqp_connection_state_t rabbit = open_rabbit(o);
    amqp_table_entry_t entry = {.key = amqp_cstring_bytes("x-queue-type"),
                                .value = {.kind = AMQP_FIELD_KIND_UTF8,
                                          .value = {.bytes = amqp_cstring_bytes(o->kind)}}};
    amqp_table_t arguments = {.num_entries = 1, .entries = &entry};
    amqp_queue_declare(rabbit, CHANNEL, amqp_cstring_bytes(o->topic), 0, 1, 0, 0, arguments);
    check(amqp_get_rpc_reply(rabbit), "declare the queue");
}

void *producer_open(const options *o) {
    producer_state *p = calloc(1, sizeof *p);
    *p = (producer_state){open_rabbit(o), o->topic, o->window, 0, 0};
    amqp_confirm_select(p->rabbit, CHANNEL);
    check(amqp_get_rpc_reply(p->rabbit), "confirms");
    return p;
}

/* Read confirms until at most this many are missing; without `wait` only those received. */
static void settle(producer_state *p, uint64_t left, long wait_s) {
    while (p->sent - p->confirmed > left) {
        struct timeval wait = {.tv_sec = wait_s};
        amqp_frame_t frame;
        int status = amqp_simple_wait_frame_noblock(p->rabbit, &frame, &wait);
        if (status == AMQP_STATUS_TIMEOUT && !wait_s) return;
        if (status != AMQP_STATUS_OK) fail("rabbitmq: %s", amqp_error_string2(status));
        if (frame.frame_type != AMQP_FRAME_METHOD) continue;
        if (frame.payload.method.id != AMQP_BASIC_ACK_METHOD)
            fail("rabbitmq: a message was refused");
        amqp_basic_ack_t *ack = frame.payload.method.decoded;
        p->confirmed = ack->multiple ? ack->delivery_tag : p->confirmed + 1;
        amqp_maybe_release_buffers(p->rabbit);
    }
}

void producer_send(void *producer, const char *data, size_t size, int copy) {
    (void)copy;
    producer_state *p = producer;
    amqp_basic_properties_t facts = {._flags = AMQP_BASIC_DELIVERY_MODE_FLAG,
                                     .delivery_mode = PERSISTENT};
    amqp_bytes_t body = {.len = size, .bytes = (void *)data};
    int status = amqp_basic_publish(p->rabbit, CHANNEL, amqp_empty_bytes,
                                    amqp_cstring_bytes(p->topic), 0, 0, &facts, body);
    if (status) fail("rabbitmq: publish: %s", amqp_error_string2(status));
    p->sent++;
    if (p->sent - p->confirmed >= (uint64_t)p->window) settle(p, (uint64_t)p->window / 2, 60);
}

void producer_push(void *producer) { settle(producer, 0, 0); }
void producer_flush(void *producer) { settle(producer, 0, 60); }

void *consumer_open(const options *o) {
    consumer_state *c = calloc(1, sizeof *c);
    c->rabbit = open_rabbit(o);
    amqp_basic_qos(c->rabbit, CHANNEL, 0, PREFETCH, 0);
    check(amqp_get_rpc_reply(c->rabbit), "prefetch");
    amqp_basic_consume(c->rabbit, CHANNEL, amqp_cstring_bytes(o->topic), amqp_empty_bytes, 0, 0, 0,
                       amqp_empty_table);
    check(amqp_get_rpc_reply(c->rabbit), "consume");
    return c;
}

long consumer_poll(void *consumer, on_message take, void *context) {
    consumer_state *c = consumer;
    struct timeval wait = {.tv_usec = 100000};
    amqp_envelope_t envelope;
    amqp_maybe_release_buffers(c->rabbit);
    amqp_rpc_reply_t reply = amqp_consume_message(c->rabbit, &envelope, &wait, 0);
    if (reply.reply_type == AMQP_RESPONSE_LIBRARY_EXCEPTION &&
        reply.library_error == AMQP_STATUS_TIMEOUT)
        return 0;
    check(reply, "next message");
    take(envelope.message.body.bytes, envelope.message.body.len, context);
    if (++c->unacknowledged >= ACKNOWLEDGE_EVERY) {
        amqp_basic_ack(c->rabbit, CHANNEL, envelope.delivery_tag, 1);
        c->unacknowledged = 0;
    }
    amqp_destroy_envelope(&envelope);
    return 1;
}
