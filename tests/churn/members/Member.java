// A member that is Apache Kafka's Java client, of the classic or the newer protocol.
import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.FileOutputStream;
import java.io.OutputStream;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Collection;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import org.apache.kafka.clients.consumer.ConsumerRebalanceListener;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.common.KafkaException;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.errors.FencedInstanceIdException;
import org.apache.kafka.common.errors.UnreleasedInstanceIdException;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;

public class Member implements ConsumerRebalanceListener {
    static final ObjectMapper JSON = new ObjectMapper();
    static final long COMMIT_MS = 500, PULSE_MS = 100, LATE_MS_MIN = 200;
    static final int RECONNECT_MS_MAX = 500, AGAIN_MS = 500;
    static final Map<String, String> STRATEGIES = Map.of(
        "range", "org.apache.kafka.clients.consumer.RangeAssignor",
        "cooperative-sticky", "org.apache.kafka.clients.consumer.CooperativeStickyAssignor");

    final JsonNode asked;
    final OutputStream notes;
    final Map<String, Object> settings;
    KafkaConsumer<byte[], byte[]> consumer;
    volatile boolean leaves;

    Member(JsonNode asked) throws Exception {
        this.asked = asked;
        notes = new FileOutputStream(asked.get("notes").asText(), true);
        settings = new HashMap<>(Map.of(
            "bootstrap.servers", asked.get("bootstrap").asText(), "group.id", asked.get("group").asText(),
            "client.id", asked.get("client").asText(), "group.protocol", asked.get("protocol").asText(),
            "auto.offset.reset", "earliest", "enable.auto.commit", false, "fetch.max.wait.ms", 100,
            "reconnect.backoff.max.ms", RECONNECT_MS_MAX));
        if (asked.get("protocol").asText().equals("classic")) {
            settings.put("session.timeout.ms", asked.get("session_ms").asInt());
            settings.put("heartbeat.interval.ms", asked.get("heartbeat_ms").asInt());
            settings.put("partition.assignment.strategy", STRATEGIES.get(asked.get("strategy").asText()));
        }
        if (asked.hasNonNull("instance")) settings.put("group.instance.id", asked.get("instance").asText());
    }

    public static void main(String[] arguments) throws Exception {
        Member member = new Member(JSON.readTree(arguments[0]));
        Thread listener = new Thread(() -> {
            try {
                while (System.in.read() >= 0) { }
            } catch (Exception closed) { }
            member.leaves = true;
        });
        Thread pulse = new Thread(member::pulse);
        for (Thread thread : List.of(listener, pulse)) {
            thread.setDaemon(true);
            thread.start();
        }
        member.run();
        System.exit(0);
    }

    void pulse() {
        try {
            while (true) {
                long before = System.nanoTime();
                Thread.sleep(PULSE_MS);
                long late = (System.nanoTime() - before) / 1_000_000 - PULSE_MS;
                if (late > LATE_MS_MIN) note("late", List.of(late));
            }
        } catch (Exception ended) { }
    }

    // Until it is asked to leave, or another has its instance id; a patient one waits for that to be free.
    void run() throws Exception {
        do {
            consumer = new KafkaConsumer<>(settings, new ByteArrayDeserializer(), new ByteArrayDeserializer());
            consumer.subscribe(List.of(asked.get("topic").asText()), this);
            try {
                read();
            } catch (UnreleasedInstanceIdException held) {
                note("refused", List.of());
                if (!asked.get("patient").asBoolean()) leaves = true;
                if (!leaves) Thread.sleep(AGAIN_MS);
            } catch (FencedInstanceIdException other) {
                note("fenced", List.of());
                leaves = true;
            }
            consumer.close();
        } while (!leaves);
        note("left", List.of());
    }

    void read() throws Exception {
        long due = 0;
        boolean uncommitted = false;
        while (!leaves) {
            List<Object> taken = new ArrayList<>();
            for (ConsumerRecord<byte[], byte[]> record : consumer.poll(Duration.ofMillis(100)))
                taken.add(List.of(record.partition(), record.offset()));
            if (!taken.isEmpty()) {
                note("took", taken);
                uncommitted = true;
            }
            if (uncommitted && System.currentTimeMillis() > due) {
                commit();
                due = System.currentTimeMillis() + COMMIT_MS;
                uncommitted = false;
            }
        }
        note("leaves", List.of());
        if (uncommitted) commit();
    }

    void commit() {
        try {
            consumer.commitSync();
        } catch (FencedInstanceIdException other) {
            throw other;
        } catch (KafkaException refused) {
            System.err.println(System.currentTimeMillis() + " " + refused);
        }
    }

    synchronized void note(String what, List<?> names) throws Exception {
        notes.write((JSON.writeValueAsString(List.of(System.currentTimeMillis(), what, names)) + "\n").getBytes());
    }

    void told(String what, Collection<TopicPartition> partitions) {
        try {
            List<Object> numbers = new ArrayList<>();
            for (TopicPartition partition : partitions) numbers.add(partition.partition());
            note(what, numbers);
        } catch (Exception error) {
            throw new IllegalStateException(error);
        }
    }

    public void onPartitionsAssigned(Collection<TopicPartition> partitions) { told("assigned", partitions); }

    public void onPartitionsRevoked(Collection<TopicPartition> partitions) { told("revoked", partitions); }

    public void onPartitionsLost(Collection<TopicPartition> partitions) { told("lost", partitions); }
}
