// The server of gRPC's interoperability tests on Debian's grpc-go, with the
// official flags. grpc-go tells no handler whether a message came compressed.
package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"log"
	"net"
	"os"
	"os/signal"
	"syscall"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	_ "google.golang.org/grpc/encoding/gzip"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	pb "vencejo/testing"
)

type service struct{ pb.UnimplementedTestServiceServer }

// echo gives back the metadata that clients ask back.
func echo(ctx context.Context, header, trailer func(metadata.MD)) {
	received, _ := metadata.FromIncomingContext(ctx)
	if values := received.Get("x-grpc-test-echo-initial"); len(values) > 0 {
		header(metadata.Pairs("x-grpc-test-echo-initial", values[0]))
	}
	if values := received.Get("x-grpc-test-echo-trailing-bin"); len(values) > 0 {
		trailer(metadata.Pairs("x-grpc-test-echo-trailing-bin", values[0]))
	}
}

func asked(wanted *pb.EchoStatus) error {
	if wanted == nil || wanted.Code == 0 {
		return nil
	}
	return status.Error(codes.Code(wanted.Code), wanted.Message)
}

func zeros(size int32) *pb.Payload { return &pb.Payload{Body: make([]byte, size)} }

func (*service) EmptyCall(ctx context.Context, _ *pb.Empty) (*pb.Empty, error) {
	echo(ctx, func(md metadata.MD) { grpc.SetHeader(ctx, md) }, func(md metadata.MD) { grpc.SetTrailer(ctx, md) })
	return &pb.Empty{}, nil
}

func (*service) UnaryCall(ctx context.Context, request *pb.SimpleRequest) (*pb.SimpleResponse, error) {
	echo(ctx, func(md metadata.MD) { grpc.SetHeader(ctx, md) }, func(md metadata.MD) { grpc.SetTrailer(ctx, md) })
	if err := asked(request.ResponseStatus); err != nil {
		return nil, err
	}
	return &pb.SimpleResponse{Payload: zeros(request.ResponseSize)}, nil
}

type sender interface {
	Send(*pb.StreamingOutputCallResponse) error
}

func answer(request *pb.StreamingOutputCallRequest, out sender) error {
	if err := asked(request.ResponseStatus); err != nil {
		return err
	}
	for _, wanted := range request.ResponseParameters {
		time.Sleep(time.Duration(wanted.IntervalUs) * time.Microsecond)
		if err := out.Send(&pb.StreamingOutputCallResponse{Payload: zeros(wanted.Size)}); err != nil {
			return err
		}
	}
	return nil
}

func (*service) StreamingOutputCall(request *pb.StreamingOutputCallRequest, stream pb.TestService_StreamingOutputCallServer) error {
	echo(stream.Context(), func(md metadata.MD) { stream.SetHeader(md) }, stream.SetTrailer)
	return answer(request, stream)
}

func (*service) StreamingInputCall(stream pb.TestService_StreamingInputCallServer) error {
	sum := 0
	for {
		request, err := stream.Recv()
		if err == io.EOF {
			return stream.SendAndClose(&pb.StreamingInputCallResponse{AggregatedPayloadSize: int32(sum)})
		}
		if err != nil {
			return err
		}
		sum += len(request.GetPayload().GetBody())
	}
}

func (*service) FullDuplexCall(stream pb.TestService_FullDuplexCallServer) error {
	echo(stream.Context(), func(md metadata.MD) { stream.SetHeader(md) }, stream.SetTrailer)
	for {
		request, err := stream.Recv()
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
		if err := answer(request, stream); err != nil {
			return err
		}
	}
}

func main() {
	port := flag.Int("port", 10000, "")
	useTLS := flag.Bool("use_tls", false, "")
	certificate := flag.String("tls_cert_file", "", "")
	key := flag.String("tls_key_file", "", "")
	flag.Parse()

	var options []grpc.ServerOption
	if *useTLS {
		credentials, err := credentials.NewServerTLSFromFile(*certificate, *key)
		if err != nil {
			log.Fatal(err)
		}
		options = append(options, grpc.Creds(credentials))
	}
	listener, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", *port))
	if err != nil {
		log.Fatal(err)
	}
	server := grpc.NewServer(options...)
	pb.RegisterTestServiceServer(server, &service{})
	ended := make(chan os.Signal, 1)
	signal.Notify(ended, syscall.SIGTERM)
	go func() {
		<-ended
		server.Stop()
	}()
	fmt.Println("listening on", listener.Addr())
	if err := server.Serve(listener); err != nil {
		log.Fatal(err)
	}
}
