// Package number, internal to the server, reads and writes numbers as Redis does. There are four kinds,
// each with its own rules:
//
//   - integers (ParseInt): strict, no blanks, no plus sign, no leading zeros;
//   - doubles in replies and scores (ParseDouble, AppendDouble): the digits of
//     the Grisu2 algorithm, which are the shortest in 999 of 1000 cases and one
//     longer than Go's in the others;
//   - long doubles (LongDouble), the 80-bit numbers of INCRBYFLOAT and
//     HINCRBYFLOAT, printed with 17 decimals;
//   - range bounds, read by the looser rule of ZRANGEBYSCORE (ParseBound).
//
// It knows no protocol, and allocates only for numbers beyond the usual size.
package number
