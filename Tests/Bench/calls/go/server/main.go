// calls.proto on Debian's grpc-go.
//
// usage: server PORT; prints `listening` and serves until SIGTERM.
package main

import (
	"context"
	"fmt"
	"io"
	"log"
	"net"
	"os"

	"google.golang.org/grpc"

	pb "vencejo/calls"
)

type load struct{ pb.UnimplementedLoadServer }

func (load) Echo(_ context.Context, item *pb.Item) (*pb.Item, error) {
	return &pb.Item{Id: item.Id, At: item.At, Body: item.Body}, nil
}

func (load) Serve(wanted *pb.Wanted, stream pb.Load_ServeServer) error {
	body := make([]byte, wanted.Size)
	for number := int64(0); number < int64(wanted.Count); number++ {
		if err := stream.Send(&pb.Item{Id: "0123456789abcdef", At: number | 1<<20, Body: body}); err != nil {
			return err
		}
	}
	return nil
}

func (load) Collect(stream pb.Load_CollectServer) error {
	last, count := &pb.Item{}, int64(0)
	for {
		item, err := stream.Recv()
		if err == io.EOF {
			return stream.SendAndClose(&pb.Item{Id: last.Id, At: count, Body: last.Body})
		}
		if err != nil {
			return err
		}
		last, count = item, count+1
	}
}

func (load) Chat(stream pb.Load_ChatServer) error {
	for {
		item, err := stream.Recv()
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
		if err := stream.Send(&pb.Item{Id: item.Id, At: item.At, Body: item.Body}); err != nil {
			return err
		}
	}
}

func main() {
	listener, err := net.Listen("tcp", "127.0.0.1:"+os.Args[1])
	if err != nil {
		log.Fatal(err)
	}
	server := grpc.NewServer(grpc.MaxConcurrentStreams(100_000))
	pb.RegisterLoadServer(server, load{})
	fmt.Println("listening")
	log.Fatal(server.Serve(listener))
}
