// Apache Kafka's Java client lives through restarts; lasting.py says what it does and prints.
import java.io.IOException;
import java.time.Duration;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.atomic.AtomicInteger;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.serialization.StringDeserializer;
import org.apache.kafka.common.serialization.StringSerializer;

public class Lasting {
    static final int PARTITIONS = 6, PAUSE_MS = 40;
    static final Set<Integer> acked = ConcurrentHashMap.newKeySet(), took = ConcurrentHashMap.newKeySet();
    static final AtomicInteger sent = new AtomicInteger(), failed = new AtomicInteger();
    static volatile boolean ends;

    public static void main(String[] arguments) throws Exception {
        String bootstrap = arguments[0], topic = arguments[1], group = arguments[2];
        String protocol = arguments.length > 3 ? arguments[3] : "classic";
        Thread end = new Thread(Lasting::waitForEnd);
        end.setDaemon(true);
        end.start();
        Thread producing = new Thread(() -> produce(bootstrap, topic));
        producing.start();
        Map<String, Object> settings = new HashMap<>(Map.of("bootstrap.servers", bootstrap, "group.id", group,
            "group.protocol", protocol, "auto.offset.reset", "earliest"));
        try (var consumer = new KafkaConsumer<>(settings, new StringDeserializer(), new StringDeserializer())) {
            consumer.subscribe(List.of(topic));
            while (!complete()) {
                for (ConsumerRecord<String, String> record : consumer.poll(Duration.ofMillis(100))) {
                    took.add(Integer.parseInt(record.value()));
                    say("took " + record.value());
                }
            }
        }
        producing.join();
    }

    static boolean answered() {
        return sent.get() == acked.size() + failed.get();
    }

    static boolean complete() {
        return ends && answered() && took.containsAll(acked);
    }

    static void produce(String bootstrap, String topic) {
        Map<String, Object> settings = Map.of("bootstrap.servers", bootstrap, "acks", "all", "enable.idempotence", true);
        try (var producer = new KafkaProducer<>(settings, new StringSerializer(), new StringSerializer())) {
            while (!ends) {
                int number = sent.getAndIncrement();
                var record = new ProducerRecord<String, String>(topic, number % PARTITIONS, null, "" + number);
                producer.send(record, (place, error) -> told(number, error));
                Thread.sleep(PAUSE_MS);
            }
            producer.flush();
        } catch (InterruptedException error) {
            throw new RuntimeException(error);
        }
    }

    static void told(int number, Exception error) {
        if (error != null) failed.incrementAndGet();
        else acked.add(number);
        say(error != null ? "failed " + number + " " + error : "acked " + number);
    }

    static synchronized void say(String line) {
        System.out.println(line);
    }

    static void waitForEnd() {
        try {
            while (System.in.read() >= 0) { }
        } catch (IOException error) {
            error.printStackTrace();
        }
        ends = true;
    }
}
