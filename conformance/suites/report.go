package main

// Reports of tests in the form of JUnit, which pytest and Ginkgo write.

import (
	"encoding/xml"
	"os"
	"strings"
)

// reportFile is where a run's report is.
const reportFile = "results.xml"

type message struct {
	Message string `xml:"message,attr"`
	Text    string `xml:",chardata"`
}

type testCase struct {
	Class   string    `xml:"classname,attr"`
	File    string    `xml:"file,attr"` // pytest's alone
	Name    string    `xml:"name,attr"`
	Failure []message `xml:"failure"`
	Error   []message `xml:"error"`
	Skipped []message `xml:"skipped"`
}

// name is what the test is called on the command line.
func (c testCase) name() string {
	if c.File == "" {
		return strings.TrimPrefix(c.Name, "[It] ")
	}
	module := strings.ReplaceAll(strings.TrimSuffix(c.File, ".py"), "/", ".")
	name := c.File
	if class := strings.TrimPrefix(strings.TrimPrefix(c.Class, module), "."); class != "" {
		name += "::" + strings.ReplaceAll(class, ".", "::")
	}
	return name + "::" + c.Name
}

// readReport reads the results of a report.
func readReport(path string) (map[string]result, error) {
	b, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	var report struct {
		Cases []testCase `xml:"testsuite>testcase"`
	}
	if err := xml.Unmarshal(b, &report); err != nil {
		return nil, err
	}
	results := map[string]result{}
	for _, c := range report.Cases {
		if len(c.Skipped) > 0 {
			continue
		}
		// A test whose end fails has a second entry.
		name := c.name()
		r, again := results[name]
		r.passed = r.passed || !again
		for _, m := range append(c.Failure, c.Error...) {
			r.passed = false
			r.output += m.Message + "\n" + m.Text + "\n"
		}
		results[name] = r
	}
	return results, nil
}
