import java.time.Duration;
import java.util.List;
import java.util.Map;
import java.util.HashMap;
import java.util.concurrent.ExecutionException;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.serialization.StringDeserializer;
import org.apache.kafka.common.serialization.StringSerializer;

/** Logs in over TLS, sends a record and reads it: LoggingIn BOOTSTRAP MECHANISM USER PASSWORD CA. */
public class LoggingIn {
    public static void main(String[] arguments) {
        String module = arguments[1].equals("PLAIN") ? "plain.PlainLoginModule" : "scram.ScramLoginModule";
        Map<String, Object> settings = new HashMap<>();
        settings.put("bootstrap.servers", arguments[0]);
        settings.put("security.protocol", "SASL_SSL");
        settings.put("sasl.mechanism", arguments[1]);
        settings.put("sasl.jaas.config", "org.apache.kafka.common.security." + module + " required username=\""
            + arguments[2] + "\" password=\"" + arguments[3] + "\";");
        settings.put("ssl.truststore.type", "PEM");
        settings.put("ssl.truststore.location", arguments[4]);
        settings.put("group.id", "java");
        settings.put("auto.offset.reset", "earliest");
        try {
            var serializer = new StringSerializer();
            try (var producer = new KafkaProducer<>(settings, serializer, serializer)) {
                producer.send(new ProducerRecord<>("logins", "hello")).get();
            }
            var deserializer = new StringDeserializer();
            try (var consumer = new KafkaConsumer<>(settings, deserializer, deserializer)) {
                consumer.subscribe(List.of("logins"));
                while (consumer.poll(Duration.ofSeconds(1)).isEmpty()) { }
            }
            System.out.println("ok");
        } catch (ExecutionException error) {
            System.out.println(error.getCause());
        } catch (Exception error) {
            System.out.println(error);
        }
    }
}
