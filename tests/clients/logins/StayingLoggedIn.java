import java.time.Duration;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.serialization.StringDeserializer;
import org.apache.kafka.common.serialization.StringSerializer;

/** What drivers/staying.py does, in Java: StayingLoggedIn BOOTSTRAP USER PASSWORD SECONDS. */
public class StayingLoggedIn {
    static volatile int sent = -1;
    static volatile Exception failed;

    public static void main(String[] arguments) throws Exception {
        Map<String, Object> settings = new HashMap<>();
        settings.put("bootstrap.servers", arguments[0]);
        settings.put("security.protocol", "SASL_PLAINTEXT");
        settings.put("sasl.mechanism", "SCRAM-SHA-512");
        settings.put("sasl.jaas.config", "org.apache.kafka.common.security.scram.ScramLoginModule required username=\""
            + arguments[1] + "\" password=\"" + arguments[2] + "\";");
        settings.put("retries", "0");
        settings.put("group.id", "java");
        settings.put("auto.offset.reset", "earliest");
        long seconds = Long.parseLong(arguments[3]);
        var sender = new Thread(() -> send(settings, seconds));
        sender.start();
        var deserializer = new StringDeserializer();
        int found = 0;
        try (var consumer = new KafkaConsumer<>(settings, deserializer, deserializer)) {
            consumer.subscribe(List.of("java"));
            long ends = System.nanoTime() + (seconds + 60) * 1_000_000_000L;
            while (failed == null && (sent < 0 || found < sent) && System.nanoTime() < ends) {
                for (var record : consumer.poll(Duration.ofMillis(500))) {
                    if (Integer.parseInt(record.value()) != found)
                        throw new IllegalStateException(record.value() + " came in place of " + found);
                    found++;
                }
            }
        }
        sender.join();
        System.out.println(found + " numbers");
        System.out.println(failed == null && found == sent ? "ok" : "failed: " + failed + ", " + found + " of " + sent);
    }

    static void send(Map<String, Object> settings, long seconds) {
        var serializer = new StringSerializer();
        int count = 0;
        try (var producer = new KafkaProducer<>(settings, serializer, serializer)) {
            for (long ends = System.nanoTime() + seconds * 1_000_000_000L; System.nanoTime() < ends; count++) {
                producer.send(new ProducerRecord<>("java", "" + count)).get();
                Thread.sleep(20);
            }
            sent = count;
        } catch (Exception error) {
            failed = error;
        }
    }
}
