#!/usr/bin/env python3
"""Asks a Stagecoach server what it offers, and calls it, with no stubs and no .proto files: by reflection.

    pip install grpcio grpcio-reflection
    python3 examples/python/reflect.py ADDRESS                                            list services and methods
    python3 examples/python/reflect.py ADDRESS stagecoach.v1.JobService/GetJob '{"id": "my-job"}'

The same as `grpcurl ADDRESS list` and `grpcurl -d JSON ADDRESS METHOD`, which find the server in the same way.
"""
import sys

import grpc
from google.protobuf import descriptor_pool, json_format, message_factory
from grpc_reflection.v1alpha.proto_reflection_descriptor_database import ProtoReflectionDescriptorDatabase


def main():
    if len(sys.argv) not in (2, 3, 4):
        raise SystemExit(__doc__)
    address, method, text = (sys.argv[1:] + ["", "{}"])[:3] if len(sys.argv) < 4 else sys.argv[1:]
    with grpc.insecure_channel(address) as channel:
        database = ProtoReflectionDescriptorDatabase(channel)
        pool = descriptor_pool.DescriptorPool(database)
        if not method:
            for service in sorted(database.get_services()):
                print(service)
                if service.startswith("stagecoach."):
                    for one in pool.FindServiceByName(service).methods:
                        stream = "stream " if one.server_streaming else ""
                        print(f"  {one.name}({one.input_type.name}) returns ({stream}{one.output_type.name})")
            return
        found = pool.FindServiceByName(method.split("/")[0]).FindMethodByName(method.split("/")[1])
        request = json_format.Parse(text, message_factory.GetMessageClass(found.input_type)(), descriptor_pool=pool)
        answer = message_factory.GetMessageClass(found.output_type)
        kind = channel.unary_stream if found.server_streaming else channel.unary_unary
        call = kind(f"/{method}", request_serializer=type(request).SerializeToString,
                    response_deserializer=answer.FromString)
        try:
            replies = call(request, timeout=60)
            for reply in replies if found.server_streaming else [replies]:
                print(json_format.MessageToJson(reply, preserving_proto_field_name=True, descriptor_pool=pool))
        except grpc.RpcError as error:
            raise SystemExit(f"{error.code().name}: {error.details()}")


if __name__ == "__main__":
    main()
