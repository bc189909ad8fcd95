// Fills an Apache Kafka, by its own client, with what a log can hold: codecs, segments, transactions, compaction,
// offsets of groups. Arguments: bootstrap address, time of the first record. Prints how far it is, and leaves without
// closing, a transaction open.
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Random;
import java.util.concurrent.Future;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.NewTopic;
import org.apache.kafka.clients.admin.RecordsToDelete;
import org.apache.kafka.clients.consumer.ConsumerGroupMetadata;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.header.internals.RecordHeader;
import org.apache.kafka.common.serialization.ByteArraySerializer;

public class KafkaWriter {
    static final String[] CODECS = {"none", "gzip", "snappy", "lz4", "zstd"};
    static String bootstrap;
    static long begin;

    public static void main(String[] arguments) throws Exception {
        bootstrap = arguments[0];
        begin = Long.parseLong(arguments[1]);
        try (Admin admin = Admin.create(Map.of("bootstrap.servers", bootstrap))) {
            createTopics(admin);
            plainTopics();
            System.out.println("plain topics");
            compacted();
            System.out.println("compacted topics");
            transactions();
            System.out.println("transactions");
            admin.deleteRecords(Map.of(partition("deleted"), RecordsToDelete.beforeOffset(33))).all().get();
            admin.deleteRecords(Map.of(partition("emptied"), RecordsToDelete.beforeOffset(-1))).all().get();
            admin.alterConsumerGroupOffsets("readers", Map.of(
                partition("codecs"), new OffsetAndMetadata(17, "noted"),
                partition("segments"), new OffsetAndMetadata(40))).all().get();
            admin.alterConsumerGroupOffsets("readers", Map.of(partition("segments"), new OffsetAndMetadata(41))).all().get();
            admin.alterConsumerGroupOffsets("other", Map.of(
                new TopicPartition("spread", 2), new OffsetAndMetadata(3))).all().get();
            admin.alterConsumerGroupOffsets("gone", Map.of(partition("codecs"), new OffsetAndMetadata(1))).all().get();
            admin.deleteConsumerGroups(List.of("gone")).all().get();
        }
        System.out.println("filled");
        System.out.flush();
        Runtime.getRuntime().halt(0);
    }

    static TopicPartition partition(String topic) {
        return new TopicPartition(topic, 0);
    }

    static void createTopics(Admin admin) throws Exception {
        Map<String, String> segments = Map.of("segment.ms", "1000", "index.interval.bytes", "100");
        Map<String, String> compaction = Map.of("cleanup.policy", "compact", "segment.ms", "1000",
            "min.cleanable.dirty.ratio", "0.01", "index.interval.bytes", "100", "file.delete.delay.ms", "1000");
        List<NewTopic> topics = new ArrayList<>();
        topics.add(topic("codecs", 1, Map.of()));
        topics.add(topic("spread", 3, Map.of("index.interval.bytes", "0")));
        topics.add(topic("segments", 1, segments));
        topics.add(topic("dotted.name-with_all-2", 1, segments));
        topics.add(topic("stamped", 1, Map.of("message.timestamp.type", "LogAppendTime", "index.interval.bytes", "100")));
        topics.add(topic("recompressed", 1, Map.of("compression.type", "zstd")));
        topics.add(topic("large", 1, Map.of("segment.bytes", "1048576")));
        topics.add(topic("hollow", 1, Map.of()));
        topics.add(topic("deleted", 1, segments));
        topics.add(topic("emptied", 1, segments));
        topics.add(topic("compacted", 1, compaction));
        topics.add(topic("compacted-transactions", 1, compaction));
        topics.add(topic("transactions", 1, segments));
        topics.add(topic("open", 1, Map.of()));
        admin.createTopics(topics).all().get();
    }

    static NewTopic topic(String name, int partitions, Map<String, String> settings) {
        Map<String, String> all = new HashMap<>(settings);
        all.put("retention.ms", "-1");
        return new NewTopic(name, partitions, (short) 1).configs(all);
    }

    static KafkaProducer<byte[], byte[]> producer(String... settings) {
        Map<String, Object> all = new HashMap<>(Map.of("bootstrap.servers", bootstrap, "linger.ms", "20",
            "key.serializer", ByteArraySerializer.class, "value.serializer", ByteArraySerializer.class));
        for (int i = 0; i < settings.length; i += 2) all.put(settings[i], settings[i + 1]);
        return new KafkaProducer<>(all);
    }

    static byte[] bytes(String text) {
        return text == null ? null : text.getBytes(StandardCharsets.UTF_8);
    }

    static ProducerRecord<byte[], byte[]> record(String topic, Integer partition, long after, String key, String value) {
        return new ProducerRecord<>(topic, partition, begin + after, bytes(key), bytes(value));
    }

    /** Sends a record alone, in a batch of its own. */
    static void alone(KafkaProducer<byte[], byte[]> producer, ProducerRecord<byte[], byte[]> record) throws Exception {
        Future<?> sent = producer.send(record);
        producer.flush();
        sent.get();
    }

    static void plainTopics() throws Exception {
        for (String codec : CODECS) {
            try (KafkaProducer<byte[], byte[]> producer = producer("compression.type", codec)) {
                for (int i = 0; i < 20; i++) {
                    String key = i % 4 == 0 ? null : i % 4 == 1 ? "" : "key" + i;
                    ProducerRecord<byte[], byte[]> record =
                        record("codecs", 0, i, key, i % 5 == 0 ? null : (codec + " ").repeat(i));
                    for (int h = 0; h < i % 3; h++) record.headers().add(new RecordHeader("h" + h, h == 0 ? null : bytes("\u00e4")));
                    producer.send(record);
                    if (i % 7 == 0) producer.flush();
                    producer.send(record("recompressed", 0, i, key, codec.repeat(10)));
                    producer.send(record("spread", null, i * 10, codec + i, "v" + i));
                    producer.send(record("stamped", 0, i, key, "v" + i));
                }
                producer.flush();
            }
        }
        Random random = new Random(7);
        try (KafkaProducer<byte[], byte[]> producer = producer("linger.ms", "0", "max.request.size", "2000000")) {
            for (String topic : List.of("segments", "deleted", "emptied", "dotted.name-with_all-2")) {
                long at = 0;
                for (int i = 0; i < 60; i++) {
                    at += i % 20 == 19 ? 600_000 : 130;  // now and then ten minutes with nothing: gaps in the time index
                    alone(producer, record(topic, 0, i % 9 == 8 ? at - 5_000 : at, "k" + i, "v".repeat(i)));
                }
            }
            for (int i = 0; i < 12; i++) {
                byte[] value = new byte[300_000];  // of one letter: what is written is packed into the tree
                Arrays.fill(value, (byte) ('a' + random.nextInt(26)));
                alone(producer, new ProducerRecord<>("large", 0, begin + i, bytes("k" + i), value));
            }
        }
    }

    static void compacted() throws Exception {
        try (KafkaProducer<byte[], byte[]> producer = producer("compression.type", "lz4")) {
            for (int round = 0; round < 8; round++) {
                for (int i = 0; i < 25; i++) {
                    boolean dies = round == 5 && i % 5 == 0;
                    producer.send(record("compacted", 0, round * 1_500 + i, "k" + (i + round) % 30, dies ? null : "v" + round));
                }
                producer.flush();
            }
            alone(producer, record("compacted", 0, 60_000, "last", "v"));
        }
        long ahead = System.currentTimeMillis() - begin + 60_000;  // of the markers, so that records close segments
        KafkaProducer<byte[], byte[]> writer = producer("transactional.id", "compacting", "compression.type", "gzip");
        writer.initTransactions();
        for (int round = 0; round < 9; round++) {
            writer.beginTransaction();
            for (int i = round > 6 ? 3 : 0; i < 10; i++) {
                writer.send(record("compacted-transactions", 0, ahead + round * 60_000 + i, "k" + i, round == 6 && i < 3 ? null : "v" + round));
            }
            writer.flush();
            if (round % 3 == 1) writer.abortTransaction();
            else writer.commitTransaction();
        }
        try (KafkaProducer<byte[], byte[]> producer = producer()) {
            alone(producer, record("compacted-transactions", 0, ahead + 1_800_000, "last", "v"));
        }
    }

    static void transactions() throws Exception {
        List<KafkaProducer<byte[], byte[]>> writers = new ArrayList<>();
        for (int i = 0; i < 3; i++) {
            writers.add(producer("transactional.id", "writer-" + i, "compression.type", CODECS[i * 2], "transaction.timeout.ms", "900000"));
            writers.get(i).initTransactions();
        }
        try (KafkaProducer<byte[], byte[]> plain = producer()) {
            for (int round = 0; round < 10; round++) {
                writers.get(0).beginTransaction();
                if (round % 3 == 0) writers.get(1).beginTransaction();
                for (int i = 0; i < 4; i++) {
                    alone(writers.get(0), record("transactions", 0, round * 400 + i, "k" + i, "first " + round));
                    alone(plain, record("transactions", 0, round * 400 + i, null, "plain " + round));
                    alone(writers.get(1), record("transactions", 0, round * 400 + i, "k" + i, "second " + round));
                }
                if (round == 7) {
                    writers.get(0).sendOffsetsToTransaction(Map.of(partition("codecs"), new OffsetAndMetadata(77)), new ConsumerGroupMetadata("in-transactions"));
                }
                if (round == 8) {
                    writers.get(0).sendOffsetsToTransaction(Map.of(partition("codecs"), new OffsetAndMetadata(88)), new ConsumerGroupMetadata("in-transactions"));
                }
                if (round % 4 == 0) writers.get(0).abortTransaction();
                else writers.get(0).commitTransaction();
                if (round % 3 == 2) {
                    if (round == 2) writers.get(1).commitTransaction();
                    else writers.get(1).abortTransaction();
                }
            }
            writers.get(1).commitTransaction();
            writers.get(2).beginTransaction();
            for (int i = 0; i < 3; i++) {
                alone(plain, record("open", 0, i, null, "before"));
                alone(writers.get(2), record("open", 0, i, null, "undecided"));
                alone(plain, record("open", 0, i, null, "after"));
            }
        }
        writers.get(0).close();
        writers.get(1).close();
    }
}
