import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HexFormat;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import java.util.TreeMap;
import java.util.TreeSet;
import org.apache.kafka.clients.consumer.ConsumerGroupMetadata;
import org.apache.kafka.clients.consumer.ConsumerPartitionAssignor;
import org.apache.kafka.clients.consumer.ConsumerPartitionAssignor.Assignment;
import org.apache.kafka.clients.consumer.ConsumerPartitionAssignor.GroupSubscription;
import org.apache.kafka.clients.consumer.ConsumerPartitionAssignor.Subscription;
import org.apache.kafka.clients.consumer.CooperativeStickyAssignor;
import org.apache.kafka.clients.consumer.RangeAssignor;
import org.apache.kafka.clients.consumer.RoundRobinAssignor;
import org.apache.kafka.clients.consumer.StickyAssignor;
import org.apache.kafka.clients.consumer.internals.ConsumerProtocol;
import org.apache.kafka.common.Cluster;
import org.apache.kafka.common.Node;
import org.apache.kafka.common.PartitionInfo;
import org.apache.kafka.common.TopicPartition;

/**
 * Java's assignors, one request a line.
 *
 * <pre>
 * assign NAME t=ab/b/.,u=a member,instance,HEX ...   racks of each partition's replicas; HEX is a subscription
 *   -> member=t0 t1;...
 * subscribe NAME t,u t0,t1 GENERATION                the subscription of a member that was assigned these last
 *   -> HEX
 * </pre>
 */
public class Assignors {
    public static void main(String[] arguments) throws Exception {
        BufferedReader lines = new BufferedReader(new InputStreamReader(System.in));
        for (String line = lines.readLine(); line != null; line = lines.readLine()) {
            String[] words = line.split(" ");
            System.out.println(words[0].equals("assign") ? assign(words) : subscribe(words));
        }
    }

    private static ConsumerPartitionAssignor named(String name) {
        return switch (name) {
            case "range" -> new RangeAssignor();
            case "roundrobin" -> new RoundRobinAssignor();
            case "sticky" -> new StickyAssignor();
            default -> new CooperativeStickyAssignor();
        };
    }

    private static String assign(String[] words) {
        Map<String, Subscription> members = new LinkedHashMap<>();
        for (String word : Arrays.copyOfRange(words, 3, words.length)) {
            String[] parts = word.split(",");
            ByteBuffer bytes = ByteBuffer.wrap(HexFormat.of().parseHex(parts[2]));
            Subscription subscription = ConsumerProtocol.deserializeSubscription(bytes);
            subscription.setGroupInstanceId(parts[1].equals("-") ? Optional.empty() : Optional.of(parts[1]));
            members.put(parts[0], subscription);
        }
        Map<String, Assignment> assigned =
            named(words[1]).assign(cluster(words[2]), new GroupSubscription(members)).groupAssignment();
        List<String> said = new ArrayList<>();
        new TreeMap<>(assigned).forEach((member, assignment) -> said.add(member + "=" + names(assignment.partitions())));
        return String.join(";", said);
    }

    private static String names(List<TopicPartition> partitions) {
        return String.join(" ", partitions.stream().map(tp -> tp.topic() + tp.partition()).toList());
    }

    private static Cluster cluster(String topics) {
        Map<Character, Node> nodes = new TreeMap<>();
        List<PartitionInfo> partitions = new ArrayList<>();
        for (String topic : topics.equals("-") ? new String[0] : topics.split(",")) {
            String[] racks = topic.substring(topic.indexOf('=') + 1).split("/");
            for (int number = 0; number < racks.length; number++) {
                List<Node> replicas = new ArrayList<>();
                for (char rack : racks[number].toCharArray()) {
                    String name = rack == '.' ? null : String.valueOf(rack);
                    replicas.add(nodes.computeIfAbsent(rack, one -> new Node(one, "host", 9092, name)));
                }
                Node[] all = replicas.toArray(new Node[0]);
                partitions.add(new PartitionInfo(topic.substring(0, topic.indexOf('=')), number, all[0], all, all));
            }
        }
        return new Cluster("cluster", nodes.values(), partitions, Set.of(), Set.of());
    }

    private static String subscribe(String[] words) {
        List<TopicPartition> owned = new ArrayList<>();
        for (String name : words[3].equals("-") ? new String[0] : words[3].split(",")) {
            owned.add(new TopicPartition(name.substring(0, 1), Integer.parseInt(name.substring(1))));
        }
        int generation = Integer.parseInt(words[4]);
        List<String> topics = List.of(words[2].split(","));
        ConsumerPartitionAssignor assignor = named(words[1]);
        if (generation >= 0) {
            assignor.onAssignment(
                new Assignment(owned), new ConsumerGroupMetadata("group", generation, "member", Optional.empty()));
        }
        boolean keeps = words[1].equals("cooperative-sticky");
        Subscription subscription =
            new Subscription(
                topics,
                assignor.subscriptionUserData(new TreeSet<>(topics)),
                keeps ? owned : List.of(),
                generation,
                Optional.empty());
        ByteBuffer bytes = ConsumerProtocol.serializeSubscription(subscription);
        return HexFormat.of().formatHex(bytes.array(), bytes.arrayOffset(), bytes.limit());
    }
}
