// Prints what MirrorMaker's clients find in a target.
//
//     java RemoteClusters BOOTSTRAP SOURCE_ALIAS GROUP

import java.time.Duration;
import java.util.Map;
import java.util.TreeSet;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.connect.mirror.MirrorClient;
import org.apache.kafka.connect.mirror.RemoteClusterUtils;

public class RemoteClusters {
    public static void main(String[] arguments) throws Exception {
        Map<String, Object> settings = Map.of("bootstrap.servers", arguments[0]);
        String source = arguments[1];
        System.out.println("upstream " + new TreeSet<>(RemoteClusterUtils.upstreamClusters(settings)));
        System.out.println("hops " + RemoteClusterUtils.replicationHops(settings, source));
        System.out.println("heartbeats " + new TreeSet<>(RemoteClusterUtils.heartbeatTopics(settings)));
        System.out.println("checkpoints " + new TreeSet<>(RemoteClusterUtils.checkpointTopics(settings)));
        try (MirrorClient client = new MirrorClient(settings)) {
            System.out.println("remote " + new TreeSet<>(client.remoteTopics(source)));
        }
        Map<TopicPartition, OffsetAndMetadata> found =
            RemoteClusterUtils.translateOffsets(settings, source, arguments[2], Duration.ofSeconds(30));
        found.forEach((partition, at) -> System.out.println(partition + " " + at.offset() + " " + at.metadata()));
    }
}
