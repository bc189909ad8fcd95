// Prints, as hex, messages in the versions that Apache Kafka 4.4.0 added, as its own classes write them.
//
//     java -cp "$HOME/.cache/apache-kafka/4.4.0/*" tests/protocol/Written.java

import java.nio.ByteBuffer;
import java.util.HexFormat;
import java.util.List;
import org.apache.kafka.common.Uuid;
import org.apache.kafka.common.message.*;
import org.apache.kafka.common.protocol.ByteBufferAccessor;
import org.apache.kafka.common.protocol.Message;
import org.apache.kafka.common.protocol.ObjectSerializationCache;

public class Written {
    static void print(String name, Message message, int version) {
        ObjectSerializationCache cache = new ObjectSerializationCache();
        ByteBuffer bytes = ByteBuffer.allocate(message.size(cache, (short) version));
        message.write(new ByteBufferAccessor(bytes), cache, (short) version);
        System.out.println(name + " " + HexFormat.of().formatHex(bytes.array()));
    }

    public static void main(String[] arguments) {
        ApiVersionsRequestData versions = new ApiVersionsRequestData()
            .setClientSoftwareName("moldau").setClientSoftwareVersion("1.2.3");
        print("ApiVersionsRequest-of-any", versions, 5);
        print("ApiVersionsRequest-of-one", versions.setClusterId("gZW1xyrxToKXBiAjZfFIVg").setNodeId(7), 5);
        ApiVersionsResponseData.ApiVersionCollection keys = new ApiVersionsResponseData.ApiVersionCollection();
        keys.add(new ApiVersionsResponseData.ApiVersion().setApiKey((short) 18).setMaxVersion((short) 5));
        ApiVersionsResponseData.FinalizedFeatureKeyCollection features =
            new ApiVersionsResponseData.FinalizedFeatureKeyCollection();
        features.add(new ApiVersionsResponseData.FinalizedFeatureKey()
            .setName("group.version").setMinVersionLevel((short) 1).setMaxVersionLevel((short) 1));
        print("ApiVersionsResponse", new ApiVersionsResponseData().setApiKeys(keys).setThrottleTimeMs(9)
            .setFinalizedFeaturesEpoch(3).setFinalizedFeatures(features), 5);
        print("ApiVersionsResponse-refused", new ApiVersionsResponseData().setErrorCode((short) 129), 5);

        Uuid topic = Uuid.fromString("gZW1xyrxToKXBiAjZfFIVg");
        print("TxnOffsetCommitRequest", new TxnOffsetCommitRequestData().setTransactionalId("t").setGroupId("g")
            .setProducerId(1000).setProducerEpoch((short) 2).setGenerationIdOrMemberEpoch(3).setMemberId("m")
            .setGroupInstanceId("i").setTopics(List.of(new TxnOffsetCommitRequestData.TxnOffsetCommitRequestTopic()
                .setTopicId(topic).setPartitions(List.of(
                    new TxnOffsetCommitRequestData.TxnOffsetCommitRequestPartition().setPartitionIndex(4)
                        .setCommittedOffset(5).setCommittedLeaderEpoch(6).setCommittedMetadata("note"),
                    new TxnOffsetCommitRequestData.TxnOffsetCommitRequestPartition().setPartitionIndex(7)
                        .setCommittedOffset(8).setCommittedMetadata(null))))), 6);
        print("TxnOffsetCommitResponse", new TxnOffsetCommitResponseData().setThrottleTimeMs(9).setTopics(List.of(
            new TxnOffsetCommitResponseData.TxnOffsetCommitResponseTopic().setTopicId(topic).setPartitions(List.of(
                new TxnOffsetCommitResponseData.TxnOffsetCommitResponsePartition()
                    .setPartitionIndex(4).setErrorCode((short) 113))))), 6);

        print("DeleteGroupsRequest", new DeleteGroupsRequestData().setGroupsNames(List.of("a", "b")), 3);
        DeleteGroupsResponseData.DeletableGroupResultCollection results =
            new DeleteGroupsResponseData.DeletableGroupResultCollection();
        results.add(new DeleteGroupsResponseData.DeletableGroupResult().setGroupId("a"));
        results.add(new DeleteGroupsResponseData.DeletableGroupResult()
            .setGroupId("b").setErrorCode((short) 134).setErrorMessage("no"));
        print("DeleteGroupsResponse", new DeleteGroupsResponseData().setThrottleTimeMs(9).setResults(results), 3);
    }
}
