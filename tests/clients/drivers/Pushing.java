// Apache Kafka's Java client produces a record now and then, and pushes its metrics meanwhile, until standard input ends.
// Arguments: the addresses, the topic. Prints the id under which it pushes.
import java.time.Duration;
import java.util.Map;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.serialization.StringSerializer;

public class Pushing {
    static volatile boolean ends;

    public static void main(String[] arguments) throws Exception {
        Thread end = new Thread(Pushing::waitForEnd);
        end.setDaemon(true);
        end.start();
        Map<String, Object> settings = Map.of("bootstrap.servers", arguments[0], "client.id", "pushing-java");
        try (var producer = new KafkaProducer<>(settings, new StringSerializer(), new StringSerializer())) {
            producer.send(new ProducerRecord<>(arguments[1], "x")).get();
            System.out.println(producer.clientInstanceId(Duration.ofSeconds(30)));
            while (!ends) {
                producer.send(new ProducerRecord<>(arguments[1], "x"));
                Thread.sleep(50);
            }
        }
    }

    static void waitForEnd() {
        try {
            while (System.in.read() >= 0) { }
        } catch (java.io.IOException ignored) {
        }
        ends = true;
    }
}
