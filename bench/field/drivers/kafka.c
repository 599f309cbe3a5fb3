/* Kafka's protocol through librdkafka. */
#include "driver.h"

#include <librdkafka/rdkafka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define WAIT_MS 100
#define DEADLINE_MS 60000
#define UNBATCHED_QUEUE 1000L /* one request each: a full queue would take minutes to send */

typedef struct {
    rd_kafka_t *kafka;
    rd_kafka_topic_t *topic;
} producer_state;

typedef struct {
    rd_kafka_queue_t *queue;
    on_message take;
    void *context;
    long taken;
} consumer_state;

const char *driver_client(void) {
    static char text[64];
    snprintf(text, sizeof text, "librdkafka %s, C", rd_kafka_version_str());
    return text;
}

static void set(rd_kafka_conf_t *conf, const char *name, const char *value) {
    char reason[256];
    if (rd_kafka_conf_set(conf, name, value, reason, sizeof reason)) fail("%s: %s", name, reason);
}

static rd_kafka_conf_t *conf_of(const options *o) {
    char address[128];
    snprintf(address, sizeof address, "%s:%d", o->host, o->port);
    rd_kafka_conf_t *conf = rd_kafka_conf_new();
    set(conf, "bootstrap.servers", address);
    set(conf, "client.id", "field");
    return conf;
}

static rd_kafka_t *open_kafka(rd_kafka_type_t type, rd_kafka_conf_t *conf) {
    char reason[256];
    rd_kafka_t *kafka = rd_kafka_new(type, conf, reason, sizeof reason);
    if (!kafka) fail("librdkafka: %s", reason);
    return kafka;
}

void driver_create(const options *o) {
    char reason[256];
    rd_kafka_t *kafka = open_kafka(RD_KAFKA_PRODUCER, conf_of(o));
    rd_kafka_NewTopic_t *topic =
        rd_kafka_NewTopic_new(o->topic, o->partitions, o->replicas, reason, sizeof reason);
    if (!topic) fail("topic: %s", reason);
    for (int i = 0; i < o->configs_count; i++) {
        char name[128];
        const char *equals = strchr(o->configs[i], '=');
        if (!equals) fail("%s is not NAME=VALUE", o->configs[i]);
        snprintf(name, sizeof name, "%.*s", (int)(equals - o->configs[i]), o->configs[i]);
        rd_kafka_NewTopic_set_config(topic, name, equals + 1);
    }
    rd_kafka_queue_t *queue = rd_kafka_queue_new(kafka);
    rd_kafka_CreateTopics(kafka, &topic, 1, NULL, queue);
    rd_kafka_event_t *event = rd_kafka_queue_poll(queue, DEADLINE_MS);
    if (!event || rd_kafka_event_error(event))
        fail("topic not created: %s", event ? rd_kafka_event_error_string(event) : "no answer");
    size_t count;
    const rd_kafka_topic_result_t **made =
        rd_kafka_CreateTopics_result_topics(rd_kafka_event_CreateTopics_result(event), &count);
    if (rd_kafka_topic_result_error(made[0]))
        fail("topic not created: %s", rd_kafka_topic_result_error_string(made[0]));
}

static void reported(rd_kafka_t *kafka, const rd_kafka_message_t *message, void *context) {
    (void)kafka;
    (void)context;
    if (message->err) fail("a message was not delivered: %s", rd_kafka_err2str(message->err));
}

static void await_topic(producer_state *p) {
    const struct rd_kafka_metadata *found;
    if (rd_kafka_metadata(p->kafka, 0, p->topic, &found, DEADLINE_MS)) fail("no metadata arrived");
    rd_kafka_metadata_destroy(found);
}

void *producer_open(const options *o) {
    char number[32];
    rd_kafka_conf_t *conf = conf_of(o);
    set(conf, "acks", o->acks);
    set(conf, "compression.type", o->compression);
    set(conf, "delivery.report.only.error", "true");
    snprintf(number, sizeof number, "%ld", o->unbatched ? UNBATCHED_QUEUE : 1000000L);
    set(conf, "queue.buffering.max.messages", number);
    set(conf, "queue.buffering.max.kbytes", "262144");
    if (o->batch_bytes) {
        snprintf(number, sizeof number, "%ld", o->batch_bytes);
        set(conf, "batch.size", number);
        set(conf, "batch.num.messages", "1000000");
    }
    if (o->unbatched) set(conf, "batch.num.messages", "1");
    if (o->linger_ms >= 0) {
        snprintf(number, sizeof number, "%g", o->linger_ms);
        set(conf, "linger.ms", number);
    } else if (o->rate > 0 || o->unbatched) set(conf, "linger.ms", "0");
    rd_kafka_conf_set_dr_msg_cb(conf, reported);
    producer_state *p = calloc(1, sizeof *p);
    p->kafka = open_kafka(RD_KAFKA_PRODUCER, conf);
    p->topic = rd_kafka_topic_new(p->kafka, o->topic, NULL);
    await_topic(p);
    return p;
}

void producer_send(void *producer, const char *data, size_t size, int copy) {
    producer_state *p = producer;
    int flags = copy ? RD_KAFKA_MSG_F_COPY : 0;
    while (rd_kafka_produce(p->topic, RD_KAFKA_PARTITION_UA, flags, (void *)data, size, NULL, 0,
                            NULL)) {
        rd_kafka_resp_err_t error = rd_kafka_last_error();
        if (error != RD_KAFKA_RESP_ERR__QUEUE_FULL) fail("produce: %s", rd_kafka_err2str(error));
        rd_kafka_poll(p->kafka, 1);
    }
}

void producer_push(void *producer) { rd_kafka_poll(((producer_state *)producer)->kafka, 0); }

void producer_flush(void *producer) {
    if (rd_kafka_flush(((producer_state *)producer)->kafka, DEADLINE_MS)) fail("not all was sent");
}

void *consumer_open(const options *o) {
    rd_kafka_conf_t *conf = conf_of(o);
    set(conf, "group.id", "field");
    set(conf, "enable.auto.commit", "false");
    set(conf, "auto.offset.reset", "earliest");
    rd_kafka_t *kafka = open_kafka(RD_KAFKA_CONSUMER, conf);
    consumer_state *c = calloc(1, sizeof *c);
    c->queue = rd_kafka_queue_get_consumer(kafka);
    rd_kafka_topic_partition_list_t *places = rd_kafka_topic_partition_list_new(o->partitions);
    for (int i = 0; i < o->partitions; i++)
        rd_kafka_topic_partition_list_add(places, o->topic, i)->offset =
            o->tail ? RD_KAFKA_OFFSET_TAIL(o->tail) : RD_KAFKA_OFFSET_BEGINNING;
    if (rd_kafka_assign(kafka, places)) fail("cannot read the topic");
    return c;
}

static void taken(rd_kafka_message_t *message, void *context) {
    consumer_state *c = context;
    if (message->err) fail("consume: %s", rd_kafka_message_errstr(message));
    c->take(message->payload, message->len, c->context);
    c->taken++;
}

long consumer_poll(void *consumer, on_message take, void *context) {
    consumer_state *c = consumer;
    c->take = take;
    c->context = context;
    c->taken = 0;
    rd_kafka_consume_callback_queue(c->queue, WAIT_MS, taken, c);
    return c->taken;
}
