// Informers of client-go at an API server and at a relay of it, which must have the same objects: in protobuf the same
// in every field, and in JSON, which a relay strips, the same in every field that is left.
//
// For each line on standard input, it waits until all are equal, and prints `equal: N objects` or the first difference.
// `cargo xtask informers` starts it.
package main

import (
	"bufio"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"reflect"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
)

const (
	protobuf = "application/vnd.kubernetes.protobuf"
	// Time for the informers to become equal: a relay that restarts is away for some seconds.
	patience = 40 * time.Second
	look     = 50 * time.Millisecond
)

// view is a source with the informers of all kinds.
type view struct {
	name   string
	stores map[string]cache.Store
	synced []cache.InformerSynced
}

func newView(name string, config *rest.Config) (*view, error) {
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, err
	}
	factory := informers.NewSharedInformerFactory(client, 0)
	of := map[string]cache.SharedIndexInformer{
		"namespaces":     factory.Core().V1().Namespaces().Informer(),
		"services":       factory.Core().V1().Services().Informer(),
		"endpointslices": factory.Discovery().V1().EndpointSlices().Informer(),
	}
	made := &view{name: name, stores: map[string]cache.Store{}}
	for kind, informer := range of {
		made.stores[kind] = informer.GetStore()
		made.synced = append(made.synced, informer.HasSynced)
	}
	factory.Start(make(chan struct{}))
	return made, nil
}

// compare returns the first difference between the objects of the API server and those of another view, and the number
// of objects.
func compare(server, other *view, same func(a, b runtime.Object) bool) (string, int) {
	count := 0
	for kind, store := range server.stores {
		keys := store.ListKeys()
		if found := len(other.stores[kind].ListKeys()); found != len(keys) {
			return fmt.Sprintf("%s has %d %s in place of %d", other.name, found, kind, len(keys)), 0
		}
		for _, key := range keys {
			expected, _, _ := store.GetByKey(key)
			found, exists, _ := other.stores[kind].GetByKey(key)
			if !exists || !same(expected.(runtime.Object), found.(runtime.Object)) {
				return fmt.Sprintf("%s has another %s %s", other.name, kind, key), 0
			}
			count++
		}
	}
	return "", count
}

func isEqual(a, b runtime.Object) bool {
	return reflect.DeepEqual(a, b)
}

// isStripped returns true if every field of the second object is in the first one, and both have the same version.
func isStripped(whole, stripped runtime.Object) bool {
	first, _ := meta.Accessor(whole)
	second, _ := meta.Accessor(stripped)
	return first.GetResourceVersion() == second.GetResourceVersion() && contains(fields(whole), fields(stripped))
}

func fields(object runtime.Object) any {
	text, _ := json.Marshal(object)
	var decoded any
	_ = json.Unmarshal(text, &decoded)
	return decoded
}

func contains(whole, part any) bool {
	switch part := part.(type) {
	case map[string]any:
		whole, is := whole.(map[string]any)
		for name, value := range part {
			is = is && contains(whole[name], value)
		}
		return is
	case []any:
		whole, is := whole.([]any)
		is = is && len(whole) == len(part)
		for at := range part {
			is = is && contains(whole[at], part[at])
		}
		return is
	default:
		// Types write a field without a value, such as the address of a load balancer, as null or not at all.
		return part == nil || reflect.DeepEqual(whole, part)
	}
}

func differences(server, full, stripped *view) (string, int) {
	difference, count := compare(server, full, isEqual)
	if difference == "" {
		difference, _ = compare(server, stripped, isStripped)
	}
	return difference, count
}

func run() error {
	api := flag.String("api", "", "URL of the API server")
	relay := flag.String("relay", "", "URL of the relay")
	ca := flag.String("ca", "", "file with the CA certificate of the relay")
	name := flag.String("server-name", "", "name in the certificate of the relay")
	token := flag.String("token", "", "file with the token for the relay")
	flag.Parse()
	config := func(contentType string) *rest.Config {
		return &rest.Config{
			Host:            *relay,
			BearerTokenFile: *token,
			TLSClientConfig: rest.TLSClientConfig{CAFile: *ca, ServerName: *name},
			ContentConfig:   rest.ContentConfig{ContentType: contentType, AcceptContentTypes: contentType},
		}
	}
	plain := &rest.Config{Host: *api, ContentConfig: config(protobuf).ContentConfig}
	var views []*view
	for _, source := range []struct {
		name   string
		config *rest.Config
	}{{"the API server", plain}, {"the relay", config(protobuf)}, {"the relay in JSON", config("application/json")}} {
		made, err := newView(source.name, source.config)
		if err != nil {
			return err
		}
		views = append(views, made)
	}
	for _, view := range views {
		cache.WaitForCacheSync(nil, view.synced...)
	}
	for lines := bufio.NewScanner(os.Stdin); lines.Scan(); {
		difference, count := differences(views[0], views[1], views[2])
		for start := time.Now(); difference != "" && time.Since(start) < patience; time.Sleep(look) {
			difference, count = differences(views[0], views[1], views[2])
		}
		if difference != "" {
			fmt.Println(difference)
		} else {
			fmt.Printf("equal: %d objects\n", count)
		}
	}
	return nil
}

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
