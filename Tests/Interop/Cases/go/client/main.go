// The client of gRPC's interoperability tests on Debian's grpc-go, with the
// official flags. Cases that need to know whether a message came compressed are
// not here: grpc-go tells nobody. Exits 0 when the case passed.
package main

import (
	"bytes"
	"context"
	"flag"
	"fmt"
	"io"
	"log"
	"net"
	"strconv"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/encoding/gzip"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	pb "vencejo/testing"
)

const (
	largeRequest  = 271828
	largeResponse = 314159
)

var sizes = [][2]int{{31415, 27182}, {9, 8}, {2653, 1828}, {58979, 45904}}

type setting struct {
	ctx  context.Context
	make func() *grpc.ClientConn
	conn *grpc.ClientConn
	stub pb.TestServiceClient
}

func require(holds bool, what string, arguments ...interface{}) {
	if !holds {
		log.Fatalf(what, arguments...)
	}
}

func ok(err error) { require(err == nil, "%v", err) }

func code(err error, wanted codes.Code) {
	require(status.Code(err) == wanted, "%v, not %v", err, wanted)
}

func zeros(size int) *pb.Payload { return &pb.Payload{Body: make([]byte, size)} }

func check(payload *pb.Payload, size int) {
	require(bytes.Equal(payload.GetBody(), make([]byte, size)), "%d bytes, not %d", len(payload.GetBody()), size)
}

func large() *pb.SimpleRequest {
	return &pb.SimpleRequest{ResponseSize: largeResponse, Payload: zeros(largeRequest)}
}

func output(size, body int) *pb.StreamingOutputCallRequest {
	return &pb.StreamingOutputCallRequest{
		ResponseParameters: []*pb.ResponseParameters{{Size: int32(size)}}, Payload: zeros(body)}
}

func emptyUnary(s setting) {
	_, err := s.stub.EmptyCall(s.ctx, &pb.Empty{})
	ok(err)
}

func largeUnary(s setting) {
	response, err := s.stub.UnaryCall(s.ctx, large())
	ok(err)
	check(response.Payload, largeResponse)
}

func clientCompressedUnary(s setting) {
	request := large()
	request.ExpectCompressed = &pb.BoolValue{Value: true}
	_, err := s.stub.UnaryCall(s.ctx, request)
	code(err, codes.InvalidArgument)
	response, err := s.stub.UnaryCall(s.ctx, request, grpc.UseCompressor(gzip.Name))
	ok(err)
	check(response.Payload, largeResponse)
	request.ExpectCompressed.Value = false
	response, err = s.stub.UnaryCall(s.ctx, request)
	ok(err)
	check(response.Payload, largeResponse)
}

func clientStreaming(s setting) {
	stream, err := s.stub.StreamingInputCall(s.ctx)
	ok(err)
	for _, size := range []int{27182, 8, 1828, 45904} {
		ok(stream.Send(&pb.StreamingInputCallRequest{Payload: zeros(size)}))
	}
	response, err := stream.CloseAndRecv()
	ok(err)
	require(response.AggregatedPayloadSize == 74922, "the sum is %d", response.AggregatedPayloadSize)
}

func serverStreaming(s setting) {
	request := &pb.StreamingOutputCallRequest{}
	for _, one := range sizes {
		request.ResponseParameters = append(request.ResponseParameters, &pb.ResponseParameters{Size: int32(one[0])})
	}
	stream, err := s.stub.StreamingOutputCall(s.ctx, request)
	ok(err)
	for _, one := range sizes {
		response, err := stream.Recv()
		ok(err)
		check(response.Payload, one[0])
	}
	_, err = stream.Recv()
	require(err == io.EOF, "%v after the last response", err)
}

func pingPong(s setting) {
	stream, err := s.stub.FullDuplexCall(s.ctx)
	ok(err)
	for _, one := range sizes {
		ok(stream.Send(output(one[0], one[1])))
		response, err := stream.Recv()
		ok(err)
		check(response.Payload, one[0])
	}
	ok(stream.CloseSend())
	_, err = stream.Recv()
	require(err == io.EOF, "%v after the last response", err)
}

func emptyStream(s setting) {
	stream, err := s.stub.FullDuplexCall(s.ctx)
	ok(err)
	ok(stream.CloseSend())
	_, err = stream.Recv()
	require(err == io.EOF, "%v, not the end", err)
}

func customMetadata(s setting) {
	ctx := metadata.NewOutgoingContext(s.ctx, metadata.Pairs(
		"x-grpc-test-echo-initial", "test_initial_metadata_value",
		"x-grpc-test-echo-trailing-bin", "\xab\xab\xab"))
	checkMetadata := func(header, trailer metadata.MD) {
		initial, trailing := header.Get("x-grpc-test-echo-initial"), trailer.Get("x-grpc-test-echo-trailing-bin")
		require(len(initial) == 1 && initial[0] == "test_initial_metadata_value", "initial %v", header)
		require(len(trailing) == 1 && trailing[0] == "\xab\xab\xab", "trailing %v", trailer)
	}
	var header, trailer metadata.MD
	response, err := s.stub.UnaryCall(ctx, large(), grpc.Header(&header), grpc.Trailer(&trailer))
	ok(err)
	check(response.Payload, largeResponse)
	checkMetadata(header, trailer)

	stream, err := s.stub.FullDuplexCall(ctx)
	ok(err)
	ok(stream.Send(output(largeResponse, largeRequest)))
	ok(stream.CloseSend())
	header, err = stream.Header()
	ok(err)
	answer, err := stream.Recv()
	ok(err)
	check(answer.Payload, largeResponse)
	_, err = stream.Recv()
	require(err == io.EOF, "%v after the response", err)
	checkMetadata(header, stream.Trailer())
}

func statusCodeAndMessage(s setting) {
	wanted := &pb.EchoStatus{Code: 2, Message: "test status message"}
	_, err := s.stub.UnaryCall(s.ctx, &pb.SimpleRequest{ResponseStatus: wanted})
	code(err, codes.Unknown)
	require(status.Convert(err).Message() == wanted.Message, "%v", err)
	stream, err := s.stub.FullDuplexCall(s.ctx)
	ok(err)
	ok(stream.Send(&pb.StreamingOutputCallRequest{ResponseStatus: wanted}))
	ok(stream.CloseSend())
	_, err = stream.Recv()
	code(err, codes.Unknown)
	require(status.Convert(err).Message() == wanted.Message, "%v", err)
}

func specialStatusMessage(s setting) {
	wanted := "\t\ntest with whitespace\r\nand Unicode BMP ☺ and non-BMP 😈\t\n"
	_, err := s.stub.UnaryCall(s.ctx, &pb.SimpleRequest{ResponseStatus: &pb.EchoStatus{Code: 2, Message: wanted}})
	code(err, codes.Unknown)
	require(status.Convert(err).Message() == wanted, "%q", err)
}

func unimplementedMethod(s setting) {
	_, err := s.stub.UnimplementedCall(s.ctx, &pb.Empty{})
	code(err, codes.Unimplemented)
}

func unimplementedService(s setting) {
	_, err := pb.NewUnimplementedServiceClient(s.conn).UnimplementedCall(s.ctx, &pb.Empty{})
	code(err, codes.Unimplemented)
}

func cancelAfterBegin(s setting) {
	ctx, cancel := context.WithCancel(s.ctx)
	stream, err := s.stub.StreamingInputCall(ctx)
	ok(err)
	cancel()
	_, err = stream.CloseAndRecv()
	code(err, codes.Canceled)
}

func cancelAfterFirstResponse(s setting) {
	ctx, cancel := context.WithCancel(s.ctx)
	stream, err := s.stub.FullDuplexCall(ctx)
	ok(err)
	ok(stream.Send(output(31415, 27182)))
	response, err := stream.Recv()
	ok(err)
	check(response.Payload, 31415)
	cancel()
	_, err = stream.Recv()
	code(err, codes.Canceled)
}

func timeoutOnSleepingServer(s setting) {
	ctx, cancel := context.WithTimeout(s.ctx, time.Millisecond)
	defer cancel()
	stream, err := s.stub.FullDuplexCall(ctx)
	if err == nil {
		stream.Send(&pb.StreamingOutputCallRequest{Payload: zeros(27182)})
		_, err = stream.Recv()
	}
	code(err, codes.DeadlineExceeded)
}

func rpcSoak(s setting) {
	for i := 0; i < 10; i++ {
		largeUnary(s)
	}
}

func channelSoak(s setting) {
	for i := 0; i < 10; i++ {
		s.conn = s.make()
		s.stub = pb.NewTestServiceClient(s.conn)
		largeUnary(s)
		s.conn.Close()
	}
}

var cases = map[string]func(setting){
	"empty_unary": emptyUnary, "large_unary": largeUnary,
	"client_compressed_unary": clientCompressedUnary, "client_streaming": clientStreaming,
	"server_streaming": serverStreaming, "ping_pong": pingPong, "empty_stream": emptyStream,
	"custom_metadata": customMetadata, "status_code_and_message": statusCodeAndMessage,
	"special_status_message": specialStatusMessage, "unimplemented_method": unimplementedMethod,
	"unimplemented_service": unimplementedService, "cancel_after_begin": cancelAfterBegin,
	"cancel_after_first_response": cancelAfterFirstResponse,
	"timeout_on_sleeping_server":  timeoutOnSleepingServer, "rpc_soak": rpcSoak, "channel_soak": channelSoak,
}

func main() {
	host := flag.String("server_host", "localhost", "")
	port := flag.Int("server_port", 10000, "")
	name := flag.String("test_case", "large_unary", "")
	useTLS := flag.Bool("use_tls", false, "")
	flag.Bool("use_test_ca", false, "")
	roots := flag.String("ca_file", "", "")
	override := flag.String("server_host_override", "", "")
	flag.Parse()

	options := []grpc.DialOption{grpc.WithInsecure()}
	if *useTLS {
		tls, err := credentials.NewClientTLSFromFile(*roots, *override)
		ok(err)
		options = []grpc.DialOption{grpc.WithTransportCredentials(tls)}
	}
	dial := func() *grpc.ClientConn {
		conn, err := grpc.Dial(net.JoinHostPort(*host, strconv.Itoa(*port)), options...)
		ok(err)
		return conn
	}
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	body, known := cases[*name]
	require(known, "no case %s", *name)
	conn := dial()
	body(setting{ctx, dial, conn, pb.NewTestServiceClient(conn)})
	conn.Close()
	fmt.Println("ok     ", *name)
}
