#!/usr/bin/env python3
"""Asks a Stagecoach server what it offers, and calls it, with no stubs and no .proto files: by reflection.

    pip install grpcio grpcio-reflection
    python3 examples/python/reflect.py ADDRESS                                            list services and methods
    python3 examples/python/reflect.py ADDRESS stagecoach.v1.JobService/GetJob '{"id": "my-job"}'
    python3 examples/python/reflect.py --certs FOLDER ADDRESS ...                              the same over mutual TLS

The same as `grpcurl ADDRESS list` and `grpcurl -d JSON ADDRESS METHOD`, which find the server in the same way.
"""
import argparse

import connect  # before grpc, which reads its settings when it is loaded
import grpc
from google.protobuf import descriptor_pool, json_format, message_factory
from grpc_reflection.v1alpha.proto_reflection_descriptor_database import ProtoReflectionDescriptorDatabase


def find_method(pool, name):
    service, _, method = name.partition("/")
    try:
        return pool.FindServiceByName(service).FindMethodByName(method)
    except KeyError:
        raise SystemExit(f"{name}: the server has no such method; run without one to list them") from None


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("address", help="host:port of a coordinator or stage")
    parser.add_argument("method", nargs="?", help="package.Service/Method; without it all are listed")
    parser.add_argument("request", nargs="?", default="{}", help="the request as JSON")
    connect.add_arguments(parser)
    options = parser.parse_args()
    method = options.method
    with connect.open_channel(options.address, options.certs) as channel:
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
        found = find_method(pool, method)
        try:
            request = json_format.Parse(options.request, message_factory.GetMessageClass(found.input_type)(), descriptor_pool=pool)
        except json_format.ParseError as error:
            raise SystemExit(f"the request is no {found.input_type.full_name}: {error}") from None
        answer = message_factory.GetMessageClass(found.output_type)
        kind = channel.unary_stream if found.server_streaming else channel.unary_unary
        call = kind(f"/{method}", request_serializer=type(request).SerializeToString,
                    response_deserializer=answer.FromString)
        try:
            replies = call(request, timeout=60)
            for reply in replies if found.server_streaming else [replies]:
                print(json_format.MessageToJson(reply, preserving_proto_field_name=True, descriptor_pool=pool))
        except grpc.RpcError as error:
            connect.fail(error)


if __name__ == "__main__":
    main()
