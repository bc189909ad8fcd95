// Apache Kafka's Java client copies a topic in transactions: Copying BOOTSTRAP IN OUT GROUP JSON.
//
// JSON has "transactional.id", "transaction.timeout.ms", "group.protocol", "group.instance.id" ("" for none), and
// "linger_ms": how long it stays at each step of a transaction. It prints each step it has come to: ready, began, wrote,
// offsets, committed, aborted. It ends with code 3 when it was fenced, and with 0 when its input is closed.
import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import java.time.Duration;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ThreadLocalRandom;
import java.util.function.Supplier;
import org.apache.kafka.clients.consumer.ConsumerGroupMetadata;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.ConsumerRecords;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.KafkaException;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.errors.RetriableException;
import org.apache.kafka.common.serialization.StringDeserializer;
import org.apache.kafka.common.serialization.StringSerializer;

public class Copying {
    static final int SECONDS = 60;

    final String copy;
    final int lingerMs;
    final KafkaConsumer<String, String> consumer;
    final KafkaProducer<String, String> producer;

    Copying(String bootstrap, String source, String copy, String group, JsonNode asked) {
        this.copy = copy;
        lingerMs = asked.get("linger_ms").asInt();
        Map<String, Object> reading = new HashMap<>(Map.of("bootstrap.servers", bootstrap, "group.id", group,
            "isolation.level", "read_committed", "enable.auto.commit", false, "auto.offset.reset", "earliest",
            "max.poll.records", 20, "fetch.max.wait.ms", 100, "group.protocol", asked.get("group.protocol").asText()));
        if (asked.get("group.protocol").asText().equals("classic"))
            reading.putAll(Map.of("session.timeout.ms", 6000, "heartbeat.interval.ms", 500));
        reading.put("reconnect.backoff.max.ms", 500);
        String instance = asked.get("group.instance.id").asText();
        if (!instance.isEmpty()) reading.put("group.instance.id", instance);
        consumer = new KafkaConsumer<>(reading, new StringDeserializer(), new StringDeserializer());
        producer = new KafkaProducer<>(Map.of("bootstrap.servers", bootstrap, "linger.ms", 0,
            "transactional.id", asked.get("transactional.id").asText(), "reconnect.backoff.max.ms", 500,
            "transaction.timeout.ms", asked.get("transaction.timeout.ms").asInt()),
            new StringSerializer(), new StringSerializer());
        insist(() -> { producer.initTransactions(); return null; });
        consumer.subscribe(List.of(source));
        System.out.println("ready");
    }

    public static void main(String[] arguments) throws Exception {
        Thread watch = new Thread(() -> {
            try { System.in.readAllBytes(); } catch (Exception gone) { }
            Runtime.getRuntime().halt(0);
        });
        watch.setDaemon(true);
        watch.start();
        try {
            JsonNode asked = new ObjectMapper().readTree(arguments[4]);
            Copying copying = new Copying(arguments[0], arguments[1], arguments[2], arguments[3], asked);
            while (true) copying.turn();
        } catch (KafkaException fenced) {
            fenced.printStackTrace();
            Runtime.getRuntime().halt(3);
        }
    }

    void turn() throws Exception {
        // From before the poll: with the consumer protocol it may change in the background while these records are copied,
        // to that of a member to which their partitions were given anew, behind what others have copied.
        ConsumerGroupMetadata member = consumer.groupMetadata();
        ConsumerRecords<String, String> records = consumer.poll(Duration.ofMillis(200));
        if (records.isEmpty()) return;
        try {
            transact(records, member);
        } catch (KafkaException failure) {
            System.err.println(failure);
            insist(() -> { producer.abortTransaction(); return null; });  // raises if the producer can go on no more
            rewind();
            System.out.println("aborted");
        }
    }

    void transact(ConsumerRecords<String, String> records, ConsumerGroupMetadata member) throws Exception {
        producer.beginTransaction();
        step("began");
        Map<TopicPartition, OffsetAndMetadata> offsets = new HashMap<>();
        for (ConsumerRecord<String, String> record : records) {
            producer.send(new ProducerRecord<>(copy, record.partition(), record.key(), record.value() + " copied"));
            offsets.put(new TopicPartition(record.topic(), record.partition()), new OffsetAndMetadata(record.offset() + 1));
        }
        producer.flush();
        step("wrote");
        insist(() -> { producer.sendOffsetsToTransaction(offsets, member); return null; });
        step("offsets");
        insist(() -> { producer.commitTransaction(); return null; });
        step("committed");
    }

    void step(String name) throws InterruptedException {
        System.out.println(name);
        if (lingerMs > 0) Thread.sleep(ThreadLocalRandom.current().nextInt(lingerMs));
    }

    // To where the group is, as nothing of the transaction counts.
    void rewind() {
        Map<TopicPartition, OffsetAndMetadata> committed = insist(() -> consumer.committed(consumer.assignment()));
        for (TopicPartition partition : consumer.assignment()) {
            OffsetAndMetadata place = committed.get(partition);
            consumer.seek(partition, place == null ? 0 : place.offset());
        }
    }

    // Again, as long as the error says that it can go away.
    static <T> T insist(Supplier<T> call) {
        long until = System.currentTimeMillis() + SECONDS * 1000;
        while (true) {
            try {
                return call.get();
            } catch (RetriableException passing) {
                if (System.currentTimeMillis() > until) throw passing;
                System.err.println("again: " + passing);
            }
        }
    }
}
