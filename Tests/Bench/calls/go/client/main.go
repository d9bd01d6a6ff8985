// Unary calls of calls.proto with Debian's grpc-go: COUNT in all, AT_A_TIME at once.
//
// usage: client ADDRESS COUNT AT_A_TIME SIZE; prints how many answers were right.
package main

import (
	"context"
	"fmt"
	"log"
	"os"
	"strconv"
	"sync"
	"sync/atomic"

	"github.com/golang/protobuf/proto"
	"google.golang.org/grpc"

	pb "vencejo/calls"
)

func number(index int) int {
	value, err := strconv.Atoi(os.Args[index])
	if err != nil {
		log.Fatal(err)
	}
	return value
}

func main() {
	count, atATime := number(2), number(3)
	connection, err := grpc.Dial(os.Args[1], grpc.WithInsecure(), grpc.WithBlock())
	if err != nil {
		log.Fatal(err)
	}
	client := pb.NewLoadClient(connection)
	item := &pb.Item{Id: "0123456789abcdef", At: 1 << 20, Body: make([]byte, number(4))}
	var next, right int64
	var workers sync.WaitGroup
	for worker := 0; worker < atATime; worker++ {
		workers.Add(1)
		go func() {
			defer workers.Done()
			for atomic.AddInt64(&next, 1) <= int64(count) {
				answer, err := client.Echo(context.Background(), item)
				if err == nil && proto.Equal(answer, item) {
					atomic.AddInt64(&right, 1)
				}
			}
		}()
	}
	workers.Wait()
	fmt.Println(right)
}
