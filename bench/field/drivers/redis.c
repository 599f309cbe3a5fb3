/* Redis Streams through hiredis: XADD in a pipeline, XREAD without groups. */
#include "driver.h"

#include <hiredis/hiredis.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define ID_BYTES 64
#define READ_MESSAGES_MAX 1000
#define READ_BYTES_MAX (1 << 20) /* about as much as Kafka's clients fetch */

typedef struct {
    redisContext *redis;
    const char *topic;
    long window;
    long waiting;
} producer_state;

typedef struct {
    redisContext *redis;
    const char *topic;
    long at_once;
    char last[ID_BYTES];
} consumer_state;

const char *driver_client(void) {
    static char text[64];
    snprintf(text, sizeof text, "hiredis %d.%d.%d, C", HIREDIS_MAJOR, HIREDIS_MINOR, HIREDIS_PATCH);
    return text;
}

static redisContext *open_redis(const options *o) {
    redisContext *redis = redisConnect(o->host, o->port);
    if (!redis || redis->err) fail("redis: %s", redis ? redis->errstr : "no memory");
    redisEnableKeepAlive(redis);
    return redis;
}

static void take_reply(redisReply *reply) {
    if (reply->type == REDIS_REPLY_ERROR) fail("redis: %s", reply->str);
    freeReplyObject(reply);
}

void driver_create(const options *o) { (void)o; } /* a stream starts with its first entry */

void *producer_open(const options *o) {
    producer_state *p = calloc(1, sizeof *p);
    *p = (producer_state){open_redis(o), o->topic, o->window, 0};
    return p;
}

static void settle(producer_state *p, long down_to) {
    while (p->waiting > down_to) {
        redisReply *reply;
        if (redisGetReply(p->redis, (void **)&reply) != REDIS_OK) fail("redis: %s", p->redis->errstr);
        take_reply(reply);
        p->waiting--;
    }
}

void producer_send(void *producer, const char *data, size_t size, int copy) {
    (void)copy;
    producer_state *p = producer;
    const char *words[] = {"XADD", p->topic, "*", "v", data};
    size_t sizes[] = {4, strlen(p->topic), 1, 1, size};
    if (redisAppendCommandArgv(p->redis, 5, words, sizes) != REDIS_OK) fail("redis: no memory");
    if (++p->waiting >= p->window) settle(p, p->window / 2);
}

/* Sending what is due next does not wait for replies in flight. */
void producer_push(void *producer) {
    producer_state *p = producer;
    struct pollfd readable = {.fd = p->redis->fd, .events = POLLIN};
    for (int done = 0; !done;)
        if (redisBufferWrite(p->redis, &done) != REDIS_OK) fail("redis: %s", p->redis->errstr);
    while (p->waiting && poll(&readable, 1, 0) > 0) {
        void *reply = NULL;
        if (redisBufferRead(p->redis) != REDIS_OK) fail("redis: %s", p->redis->errstr);
        while (redisGetReplyFromReader(p->redis, &reply) == REDIS_OK && reply) {
            take_reply(reply);
            p->waiting--;
        }
    }
}

void producer_flush(void *producer) { settle(producer, 0); }

void *consumer_open(const options *o) {
    consumer_state *c = calloc(1, sizeof *c);
    long at_once = READ_BYTES_MAX / (o->size > 0 ? o->size : 1);
    if (at_once > READ_MESSAGES_MAX) at_once = READ_MESSAGES_MAX;
    *c = (consumer_state){open_redis(o), o->topic, at_once < 1 ? 1 : at_once, "0-0"};
    return c;
}

long consumer_poll(void *consumer, on_message take, void *context) {
    consumer_state *c = consumer;
    redisReply *reply = redisCommand(c->redis, "XREAD COUNT %ld BLOCK 100 STREAMS %s %s",
                                     c->at_once, c->topic, c->last);
    if (!reply) fail("redis: %s", c->redis->errstr);
    if (reply->type == REDIS_REPLY_ERROR) fail("redis: %s", reply->str);
    long count = 0;
    if (reply->type == REDIS_REPLY_ARRAY) {
        redisReply *entries = reply->element[0]->element[1];
        for (; count < (long)entries->elements; count++) {
            redisReply *entry = entries->element[count], *value = entry->element[1]->element[1];
            take(value->str, value->len, context);
        }
        if (count) snprintf(c->last, ID_BYTES, "%s", entries->element[count - 1]->element[0]->str);
    }
    freeReplyObject(reply);
    return count;
}
